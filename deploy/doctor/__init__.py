"""What is wrong between this machine and Kafka, step by step, each within its time."""
