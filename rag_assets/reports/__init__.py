"""From records to what people read. Nothing here opens a store or prints."""
