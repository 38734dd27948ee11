"""What both NVIDIA lanes share: releases, precisions, memory."""
