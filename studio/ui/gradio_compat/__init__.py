"""Everything that leans on the inside of Gradio. Its tests say which assumption broke."""
