"""The estimators that read vectors, on the GPU that holds these.

The functions of the same names one level up, which define what is estimated, come here with tensors on a
GPU. Here, too, all is computed in float64; sums are formed in another order, so that the last digits
differ. Tensors have methods for everything, and PyTorch need not be imported where there are none.
"""
