"""Raw tags of known tools, each with the metric and split an expert reads in it; none is mapped to anything else."""

from __future__ import annotations

import pytest

from afterrun.loaders.names import canonical, resolve

DIALECTS = """
# detectron2
total_loss                              loss                    none
loss_box_reg                            box_reg_loss            none
loss_rpn_cls                            rpn_cls_loss            none
data_time                               data_time_s             none
eta_seconds                             eta_s                   none
bbox/AP                                 map                     none
bbox/AP50                               map50                   none
bbox/AP75                               map75                   none
segm/AP                                 map                     none
bbox/APs                                -                       none
fast_rcnn/cls_accuracy                  fast_rcnn_cls_accuracy  none
fast_rcnn/false_negative                -                       none
# MMEngine and its relatives
coco/bbox_mAP                           map                     none
coco/bbox_mAP_50                        map50                   none
coco/bbox_mAP_s                         -                       none
coco/AP .75                             map75                   none
bbox_mAP                                map                     none
mIoU                                    iou                     none
aAcc                                    accuracy                none
mAcc                                    balanced_accuracy       none
accuracy/top1                           accuracy                none
val/data_time                           data_time_s             val
acc_pose                                pose_accuracy           none
NME                                     nme                     none
grad_norm                               grad_norm               none
# DETR
test_coco_eval_bbox[0]                  map                     test
test_coco_eval_bbox[1]                  map50                   test
test_coco_eval_bbox[8]                  -                       test
train_loss_giou_0                       giou_0_loss             train
test_class_error                        class_error             test
# Megatron-LM, NeMo
lm loss                                 loss                    none
lm loss validation ppl                  perplexity              val
lm-loss-training/lm loss                loss                    train
iteration-time/iteration-time           step_time_s             none
loss scale                              loss_scale              none
grad norm                               grad_norm               none
consumed samples                        samples                 none
number of nan iterations                -                       none
backward-params-all-reduce              -                       none
reduced_train_loss                      loss                    train
train_step_timing in s                  step_time_s             train
# llm.c, nanoGPT and modded-nanogpt
norm                                    grad_norm               none
tok/s                                   tokens_per_s            none
val_bpb                                 bits_per_byte           val
HellaSwag                               hellaswag               none
train_time                              elapsed_s               train
step_avg                                -                       none
# fairseq
train_nll_loss                          loss                    train
valid_ppl                               perplexity              val
train_wps                               tokens_per_s            train
ups                                     steps_per_s             none
wpb                                     -                       none
gnorm                                   grad_norm               none
wall                                    elapsed_s               none
train_train_wall                        elapsed_s               train
num_updates                             step                    none
code_perplexity                         code_perplexity         none
valid_best_loss                         best_loss               val
# torchtitan, OLMo
tps                                     tokens_per_s            none
throughput(tps)                         tokens_per_s            none
mfu(%)                                  mfu                     none
loss_metrics/global_avg_loss            loss                    none
loss_metrics/global_max_loss            max_loss                none
time_metrics/data_loading(s)            data_time_s             none
train/CrossEntropyLoss                  loss                    train
train/Perplexity                        perplexity              train
optim/total_grad_norm                   grad_norm               none
optim/learning_rate_group0              lr                      none
throughput/total_tokens                 tokens                  none
# Hugging Face, TRL
eval_loss                               loss                    val
train/loss                              loss                    train
eval_wer                                wer                     val
eval_rougeLsum                          rougelsum               val
eval_bleu                               bleu                    val
eval_exact_match                        exact_match             val
eval_mean_iou                           iou                     val
eval_overall_f1                         overall_f1              val
eval_samples_per_second                 samples_per_s           val
train/global_step                       step                    train
train/epoch                             epoch                   train
total_flos                              flops                   none
num_input_tokens_seen                   tokens                  none
rewards/accuracies                      reward_accuracy         none
rewards/margins                         -                       none
# Lightning, Keras, Ultralytics, Chainer
train_loss_epoch                        loss                    train
val_loss/dataloader_idx_0               dataloader_idx_0_loss   val
lr-Adam/pg1                             lr                      none
trainer/global_step                     step                    none
grad_2.0_norm_total                     grad_norm               none
hp_metric                               -                       none
val_accuracy                            accuracy                val
val_sparse_categorical_accuracy         accuracy                val
evaluation_loss_vs_iterations           loss                    val
epoch_learning_rate                     lr                      none
metrics/mAP50-95(B)                     map                     none
metrics/mAP_0.5:0.95                    map                     none
metrics/precision(B)                    precision               none
train/dfl_loss                          dfl_loss                train
x/lr0                                   lr                      none
validation/main/accuracy                accuracy                val
learning_rate/group0                    lr                      none
# reinforcement learning
rollout/ep_rew_mean                     reward                  none
rollout/ep_len_mean                     episode_length          none
rollout/exploration rate                -                       none
train/approx_kl                         kl                      train
train/clip_fraction                     clip_rate               train
train/explained_variance                explained_variance      train
train/policy_gradient_loss              policy_gradient_loss    train
time/total_timesteps                    step                    none
time/fps                                fps                     none
charts/episodic_return                  reward                  none
charts/SPS                              steps_per_s             none
losses/clipfrac                         clip_rate               none
env_runners/episode_return_mean         reward                  none
mean 100 episode reward                 reward                  none
Loss/value_function                     value_function_loss     none
critic/rewards/mean                     reward                  none
# games of two networks
D_loss                                  d_loss                  none
Loss/G                                  g_loss                  none
discriminator/loss                      discriminator_loss      none
discriminator loss agent                discriminator_agent_loss none
G_GAN                                   -                       none
# generic
trainLoss                               loss                    train
Loss/Valid                              loss                    val
loss/epoch                              loss                    none
loss/reward                             reward_loss             none
loss/dice                               dice_loss               none
Dice                                    dice                    none
recall@5                                recall@5                none
val/ndcg@10                             ndcg@10                 val
perplexity                              perplexity              none
epoch_n                                 epoch                   none
loss_std                                -                       none
loss_weight                             -                       none
accuracy_threshold                      -                       none
grad_norm_loss_critic                   -                       none
layers.0.attention/norm                 -                       none
lr_scale                                -                       none
learning_starts                         -                       none
learning_progress                       -                       none
reward/std_dev                          -                       none
num_errors                              -                       none
samples/it                              -                       none
time                                    -                       none
data                                    -                       none
"""

ROWS = [line.rsplit(None, 2) for line in DIALECTS.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize(("tag", "metric", "split"), ROWS, ids=[r[0] for r in ROWS])
def test_known_tags(tag: str, metric: str, split: str) -> None:
    name = canonical(tag)
    assert (name.metric or "-", name.split) == (metric, split)


def metrics_of(*tags: str, **points: int) -> dict[str, str | None]:
    return {tag: name.metric for tag, name in resolve({**dict.fromkeys(tags, 10), **points}).items()}


def test_a_folder_that_all_curves_share_is_no_part_of_the_name() -> None:
    assert metrics_of("exp1/train/loss", "exp1/val/loss") == {
        "exp1/train/loss": "loss",
        "exp1/val/loss": "loss",
    }
    assert metrics_of("train/loss", "eval/c4/loss") == {"train/loss": "loss", "eval/c4/loss": "loss"}
    assert metrics_of("trainer0/step_time") == {"trainer0/step_time": "step_time_s"}


def test_a_folder_that_tells_curves_apart_stays() -> None:
    assert metrics_of("train/rpn/loss", "train/head/loss", "val/rpn/loss") == {
        "train/rpn/loss": "rpn_loss",
        "train/head/loss": "head_loss",
        "val/rpn/loss": "rpn_loss",
    }
    several = metrics_of("train/loss", "eval/c4/loss", "eval/pile/loss")
    assert several == {"train/loss": "loss", "eval/c4/loss": "c4_loss", "eval/pile/loss": "pile_loss"}
    assert metrics_of("w0/step_time", "w1/step_time") == {"w0/step_time": None, "w1/step_time": None}
    assert metrics_of("a/reward", "b/reward") == {"a/reward": "a_reward", "b/reward": "b_reward"}
    assert metrics_of("discriminator/loss") == {"discriminator/loss": "discriminator_loss"}


def test_the_number_that_keras_gives_a_second_metric_is_no_part_of_the_name() -> None:
    assert metrics_of("mean_io_u_5", "val_mean_io_u_5") == {"mean_io_u_5": "iou", "val_mean_io_u_5": "iou"}
    assert metrics_of("auc_1", "auc_2") == {"auc_1": "1_auc", "auc_2": "2_auc"}


@pytest.mark.parametrize("beside", ["data_time", "data"])
def test_time_is_that_of_a_step_beside_the_time_of_its_data(beside: str) -> None:
    assert metrics_of("time", beside) == {"time": "step_time_s", beside: "data_time_s"}
    assert metrics_of("val/time", f"val/{beside}")["val/time"] == "step_time_s"
    assert metrics_of("time", f"val/{beside}")["time"] is None
    assert metrics_of("time", "loss")["time"] is None
    assert metrics_of("Time", "Data") == {"Time": "step_time_s", "Data": "data_time_s"}


def test_time_for_one_image_is_no_time_of_a_step() -> None:
    assert metrics_of("epoch", "iters", "time", "data", "G_GAN")["time"] is None


def test_two_spellings_of_one_metric_are_two_curves() -> None:
    assert metrics_of("loss", "nll_loss") == {"loss": "loss", "nll_loss": "nll_loss"}
    assert metrics_of("train/nll_loss", "val/nll_loss", "val/loss") == {
        "train/nll_loss": "nll_loss",
        "val/nll_loss": "nll_loss",
        "val/loss": "loss",
    }
    assert metrics_of("nll_loss", "val/nll_loss") == {"nll_loss": "loss", "val/nll_loss": "loss"}
    assert metrics_of("train_ce", "val_loss") == {"train_ce": "loss", "val_loss": "loss"}
    assert metrics_of("ce", loss=1) == {"ce": "loss", "loss": "loss"}, (
        "a summary does not take a curve's name"
    )
