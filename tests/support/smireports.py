"""Full reports of ``nvidia-smi -q`` with a few values of each section, as text and as XML of two schemas."""

from __future__ import annotations


def text(date: str, *devices: tuple[str, int]) -> str:
    """A report: (name, utilisation) a device; used memory is 100 MiB times the utilisation."""
    out = f"\n==============NVSMI LOG==============\n\nTimestamp                                 : {date}\n"
    out += f"Driver Version                            : 590.48.01\nCUDA Version                              : 13.1\n\nAttached GPUs                             : {len(devices)}\n"
    for i, (name, util) in enumerate(devices):
        out += f"""GPU 00000000:0{i}:09.0
    Product Name                          : {name}
    MIG Mode
        Current                           : Disabled
    MIG Device
        Index                             : 3
        Shared FB Memory Usage
            Total                         : 40448 MiB
            Used                          : 11 MiB
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 5
        Tx Throughput                     : 3092 KB/s
    Fan Speed                             : N/A
    Performance State                     : P2
    Clocks Event Reasons
        Idle                              : Not Active
        SW Power Cap                      : Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
        Sync Boost                        : Not Active
    FB Memory Usage
        Total                             : 81559 MiB
        Used                              : {100 * util} MiB
    Utilization
        GPU                               : {util} %
        Memory                            : N/A
    Temperature
        GPU Current Temp                  : 59 C
        GPU Max Operating Temp            : 87 C
    GPU Power Readings
        Average Power Draw                : 629.45 W
        Instantaneous Power Draw          : 588.39 W
        Current Power Limit               : 700.00 W
    Module Power Readings
        Average Power Draw                : 1.00 W
    Clocks
        SM                                : 1980 MHz
    Max Clocks
        SM                                : 1985 MHz
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 1132{i}
            Type                          : C
            Name                          : /opt/tools/memhog -x
            Used GPU Memory               : 2566 MiB
"""
    return out


def device_xml(name: str, util: str, *, old: bool = False) -> str:
    """A device as schema 11 (``old``) or 13 has it."""
    power = (
        "<power_readings><power_draw>61.5 W</power_draw><power_limit>250.00 W</power_limit></power_readings>"
        if old
        else "<gpu_power_readings><average_power_draw>60.0 W</average_power_draw><instant_power_draw>61.5 W</instant_power_draw>"
        "<current_power_limit>250.00 W</current_power_limit></gpu_power_readings>"
        "<module_power_readings><instant_power_draw>9 W</instant_power_draw></module_power_readings>"
    )
    word = "throttle" if old else "event"
    return f"""<gpu id="00000000:01:00.0">
    <product_name>{name}</product_name>
    <mig_devices><mig_device><index>4</index><fb_memory_usage><total>100 MiB</total><used>12 MiB</used></fb_memory_usage></mig_device></mig_devices>
    <clocks_{word}_reasons>
      <clocks_{word}_reason_sw_thermal_slowdown>Active</clocks_{word}_reason_sw_thermal_slowdown>
      <clocks_{word}_reason_gpu_idle>Active</clocks_{word}_reason_gpu_idle>
    </clocks_{word}_reasons>
    <performance_state>P8</performance_state>
    <fb_memory_usage><total>10240 MiB</total><used>50 MiB</used></fb_memory_usage>
    <utilization><gpu_util>{util}</gpu_util></utilization>
    <temperature><gpu_temp>27 C</gpu_temp><gpu_temp_max_threshold>98 C</gpu_temp_max_threshold></temperature>
    {power}
    <supported_clocks><supported_mem_clock><value>9501 MHz</value></supported_mem_clock></supported_clocks>
    <processes><process_info><pid>77</pid><type>C</type><process_name>/opt/x/python</process_name><used_memory>40 MiB</used_memory></process_info></processes>
  </gpu>"""


def xml(date: str, *devices: str, version: int = 12) -> str:
    """A report of these devices."""
    return (
        f'<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{version}.dtd">\n<nvidia_smi_log>\n'
        f"<timestamp>{date}</timestamp>\n<driver_version>535.54.03</driver_version>\n"
        + "\n".join(devices)
        + "\n</nvidia_smi_log>\n"
    )
