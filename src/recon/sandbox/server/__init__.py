"""The sandbox over real HTTP: routes, control, delivery, serving."""
