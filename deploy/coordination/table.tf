# The table that several weirs of one instance share, for Terraform. weir does not make it:
# it is to outlive weir, and its loss is that of approvals and suspensions.
variable "table_name" {
  type    = string
  default = "weir"
}

resource "aws_dynamodb_table" "weir" {
  name                        = var.table_name
  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = true
  hash_key                    = "pk"
  range_key                   = "sk"

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  point_in_time_recovery {
    enabled = true
  }

  lifecycle {
    prevent_destroy = true
  }
}

output "arn" {
  value = aws_dynamodb_table.weir.arn
}
