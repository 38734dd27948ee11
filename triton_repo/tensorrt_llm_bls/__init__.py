"""The served model tensorrt_llm_bls: text in, text out, draft-target speculation over the two engine models."""
