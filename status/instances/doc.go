// Package instances answers the question what an EC2 instance runs. It finds the instance in the pools of a
// daemon's last passes, or only in AWS, and adds facts that AWS reports when somebody asks. Passes do not
// read those facts.
package instances
