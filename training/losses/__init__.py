"""What training minimises, beside the codes themselves."""
