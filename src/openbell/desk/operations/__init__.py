"""What an operator needs: health, backups and logs."""
