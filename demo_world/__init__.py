"""The demo world: artificial languages that wear real codes, and every data set of the papers made from them."""
