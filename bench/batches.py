#!/usr/bin/env python3
"""Samples in a batch of the workloads that are compared with PyTorch.

Usage: batches.py MODEL cpu|cuda
"""

import sys

BATCHES = {"mlp": 1024, "lenet5": 64, "alexnet": 32, "vgg16": 4, "resnet18": 16, "resnet18_cifar": 64, "resnet50": 8,
           "efficientnet_b0": 8, "efficientnet_b4": 2, "convmixer_768_32": 2, "vit_b_16": 4, "simclr_resnet18": 64,
           "bert_base": 4}
# On a GPU: the batches that it is used with.
GPU_BATCHES = {"alexnet": 128, "vgg16": 64, "resnet18": 128, "resnet18_cifar": 128, "resnet50": 128,
               "efficientnet_b0": 64, "efficientnet_b4": 32, "convmixer_768_32": 64, "vit_b_16": 64,
               "simclr_resnet18": 256, "bert_base": 64}


def batch_of(name, device):
    return GPU_BATCHES.get(name, BATCHES[name]) if device == "cuda" else BATCHES[name]


if __name__ == "__main__":
    print(batch_of(sys.argv[1], sys.argv[2]))
