"""Lightning: a fit of three epochs and a test, with its CSV logger and its TensorBoard logger."""

from __future__ import annotations

import lightning
import torch
from lightning.pytorch.callbacks import LearningRateMonitor
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

NAN, INF = float("nan"), float("inf")
ODD = {2: NAN, 4: INF}


class Line(lightning.LightningModule):
    def __init__(self, lr: float = 0.5, optimizer: str = "sgd", layers: tuple[int, ...] = (1, 2)) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(1, 1)

    def _loss(self, batch: list[torch.Tensor]) -> torch.Tensor:
        x, y = batch
        return ((self.layer(x) - y) ** 2).mean()

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        loss = self._loss(batch)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        self.log("odd", ODD.get(self.global_step, float(self.global_step)))
        return loss

    def validation_step(self, batch: list[torch.Tensor], index: int) -> None:
        self.log("val_loss", self._loss(batch))
        self.log('val/größe, "q"', 1.5)

    def test_step(self, batch: list[torch.Tensor], index: int) -> None:
        self.log("test_loss", self._loss(batch))

    def configure_optimizers(self) -> tuple[list[object], list[object]]:
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)]


torch.manual_seed(0)
x = torch.linspace(0, 1, 12)[:, None]
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, 2 * x), batch_size=3)
loggers = [
    CSVLogger(".", name="lightning_logs", flush_logs_every_n_steps=3),
    TensorBoardLogger(".", name="tb"),
]
trainer = lightning.Trainer(
    max_epochs=3,
    logger=loggers,
    log_every_n_steps=1,
    accelerator="cpu",
    enable_progress_bar=False,
    enable_checkpointing=False,
    callbacks=[LearningRateMonitor()],
)
model = Line()
trainer.fit(model, data, data)
trainer.test(model, data)
