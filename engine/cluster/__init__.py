"""One engine over many: replicas that hold one each, and one that passes requests on."""
