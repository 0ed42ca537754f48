"""Sets that agree in every leg, found by their keys and set aside."""
