"""Prometheus, Grafana, InfluxDB: one counter and unit whatever the exporter calls it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from afterrun.loaders.collect import collect
from tests.support.golden_profiles import START_S


def read(folder: Path, name: str, text: str) -> pl.DataFrame:
    (folder / name).write_text(text)
    return collect([folder]).tables.samples.with_columns(pl.col("counter", "series", "host").cast(pl.String))


def source(folder: Path) -> dict[str, object]:
    return collect([folder]).tables.sources.row(0, named=True)


class TestPrometheusText:
    def test_ratios_become_per_cent_and_uuids_devices(self, tmp_path: Path) -> None:
        text = '# TYPE nvidia_smi_utilization_gpu_ratio gauge\nnvidia_smi_utilization_gpu_ratio{uuid="a"} 0.5\nnvidia_smi_utilization_gpu_ratio{uuid="b"} 1\n'
        rows = read(tmp_path, "s.prom", text)
        assert rows.select("device", "counter", "value").rows() == [
            (0, "gpu_util_pct", 50.0),
            (1, "gpu_util_pct", 100.0),
        ]

    def test_labels_with_escapes_braces_and_commas(self, tmp_path: Path) -> None:
        text = '# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{gpu="3",Hostname="n1",model="A \\"x\\", {80}"} 97 1700000000500\n'
        row = read(tmp_path, "s.prom", text).row(0, named=True)
        assert (row["device"], row["host"], row["value"]) == (3, "n1", 97)
        assert row["series"] == 'model="A \\"x\\", {80}"'
        assert row["t_ns"] == START_S * 10**9 + 500_000_000

    def test_a_line_that_is_no_sample_is_counted(self, tmp_path: Path) -> None:
        read(tmp_path, "s.prom", "# TYPE a gauge\na 1\na{b= 2\na{} x\n")
        assert source(tmp_path)["damaged"] == 2


class TestPrometheusJson:
    def test_b53_stale_marks_stay_nan_and_holes_stay_holes(self, tmp_path: Path) -> None:
        values = [
            [START_S + 15 * i, "NaN" if i in (5, 6) else "+Inf" if i == 9 else "90"]
            for i in range(21)
            if not 11 <= i <= 15
        ]
        answer = {
            "status": "success",
            "data": {
                "resultType": "matrix",
                "result": [{"metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0"}, "values": values}],
            },
        }
        rows = read(tmp_path, "q.json", json.dumps(answer))
        assert len(rows) == 16
        assert rows["value"].is_finite().sum() == 13
        assert rows["t_ns"].diff().max() == 90 * 10**9

    def test_the_inner_list_alone_and_instant_vectors(self, tmp_path: Path) -> None:
        rows = read(
            tmp_path,
            "q.json",
            json.dumps([{"metric": {"__name__": "up", "job": "x"}, "value": [START_S + 0.25, "1"]}]),
        )
        assert rows.select("counter", "value").rows() == [("up", 1.0)]
        assert rows["t_ns"][0] == START_S * 10**9 + 250_000_000

    def test_damaged_points_and_cut_files(self, tmp_path: Path) -> None:
        good = json.dumps([{"metric": {}, "values": [[1, "2"], [3], "x", [4, "y"]]}])
        assert len(read(tmp_path, "q.json", good)) == 1
        assert source(tmp_path)["damaged"] == 3
        read(tmp_path, "q.json", good[:-5])
        assert source(tmp_path)["status"] == "unreadable"


class TestGrafana:
    def test_long_tables(self, tmp_path: Path) -> None:
        rows = read(
            tmp_path,
            "g.csv",
            "Series;Time;Value\nnet.out(device=eth0,hostname=n1,);2016-05-19T11:36:27.000Z;8.5\nnet.out(device=eth0,hostname=n1,);2016-05-19T11:36:42.000Z;null\n",
        )
        assert rows.select("counter", "host", "series", "value").rows() == [
            ("net.out", "n1", 'device="eth0"', 8.5)
        ]

    def test_wide_tables_with_labels_units_and_blanks(self, tmp_path: Path) -> None:
        text = 'sep=,\nTime,"DCGM_FI_DEV_FB_USED{gpu=""0""}","DCGM_FI_DEV_FB_USED{gpu=""1""}"\n2026-01-05 10:00:00,12 GiB,\n2026-01-05 10:00:15,13 GiB,512 MiB\n'
        rows = read(tmp_path, "g.csv", text)
        assert rows.select("device", "counter").unique().sort("device").rows() == [
            (0, "mem_used_bytes"),
            (1, "mem_used_bytes"),
        ]
        assert rows.filter(pl.col("device") == 0)["value"].to_list() == [12 * 2.0**30, 13 * 2.0**30]
        assert len(rows) == 3

    def test_a_training_log_with_a_time_column_is_not_taken(self, tmp_path: Path) -> None:
        (tmp_path / "log.csv").write_text("time,loss\n1.0,3.0\n2.0,2.0\n3.0,1.5\n")
        assert source(tmp_path)["format"] != "grafana-csv"


class TestInflux:
    def test_lines_with_escapes_and_all_kinds_of_fields(self, tmp_path: Path) -> None:
        stamp = START_S * 10**9
        rows = read(
            tmp_path,
            "t.influx",
            f'nvidia_smi,host=node\\ 1,index=2,name=A100 utilization_gpu=91i,memory_used=1024i,pstate="P0 a,b=c",ok=true {stamp}\ncpu,host=node\\ 1 usage_iowait=2.5 {stamp}\n',
        )
        got = {(r["counter"], r["device"]): r["value"] for r in rows.iter_rows(named=True)}
        assert got[("gpu_util_pct", 2)] == 91
        assert got[("mem_used_bytes", 2)] == 1024 * 2**20
        assert got[("iowait_pct", None)] == 2.5
        assert rows["host"].unique().to_list() == ["node 1"]
        assert set(rows["t_ns"]) == {stamp}

    @pytest.mark.parametrize("line", ["loss=0.5 acc=0.9", "step 1 loss=0.5 1700000000", "epoch=1,loss=2 3"])
    def test_a_log_of_pairs_is_no_line_protocol(self, tmp_path: Path, line: str) -> None:
        (tmp_path / "train.log").write_text(f"{line}\n" * 30)
        assert "influx-lines" not in collect([tmp_path]).tables.sources["format"].cast(pl.String).to_list()

    def test_annotated_csv_with_a_second_header(self, tmp_path: Path) -> None:
        head = "#group,false\n#datatype,string\n#default,_result\n,result,table,_time,_value,_field,_measurement,host\n"
        text = (
            head
            + ",,0,2026-01-05T10:00:00.123456789Z,55.5,utilization_gpu,nvidia_smi,n1\n\n"
            + head
            + ",,1,2026-01-05T10:00:10Z,nan?,utilization_gpu,nvidia_smi,n1\n"
        )
        rows = read(tmp_path, "f.csv", text)
        assert rows.select("counter", "host", "value").rows() == [("gpu_util_pct", "n1", 55.5)]
        assert rows["t_ns"][0] % 10**9 == 123_456_789
        assert source(tmp_path)["damaged"] == 1
