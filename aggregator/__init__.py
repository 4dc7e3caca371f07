"""From bytes to exact counts to estimates."""
