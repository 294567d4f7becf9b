package awsemu

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// allowance is the size of a token bucket: the maximum burst of calls, and the additional calls per second.
type allowance struct {
	burst  float64
	refill float64
}

// tokenBucket is the content of a bucket at a time.
type tokenBucket struct {
	tokens float64
	at     time.Time
}

// spend takes a token for the call, and reports whether one was available.
func (s *Server) spend(rq *wire.Exchange, call *Call) bool {
	name, size := bucket(rq)
	call.Bucket = rq.Service.Name + ":" + name
	key := rq.World.Account + "/" + rq.World.Name + "/" + rq.Service.Name + "/" + name
	b := s.buckets[key]
	if b == nil {
		b = &tokenBucket{tokens: size.burst, at: s.world.Now}
		s.buckets[key] = b
	}
	if passed := s.world.Now.Sub(b.at).Seconds(); passed > 0 {
		b.tokens = min(size.burst, b.tokens+passed*size.refill)
		b.at = s.world.Now
	}
	enough := b.tokens >= 1
	if enough {
		b.tokens--
	}
	call.Left = b.tokens
	return enough
}

// bucket returns the name and size of a call's bucket. EC2 publishes its sizes and has a bucket for each
// action. Auto Scaling has one limit for all its actions and EKS limits each action; neither publishes its
// sizes, so these are conservative. SSM and STS document 40 and 600 calls per second, CloudWatch 9 for
// reading alarms and 3 for changing them.
func bucket(rq *wire.Exchange) (string, allowance) {
	switch rq.Service.Name {
	case "ec2":
		return rq.Operation.Name, ec2Allowance(rq)
	case "autoscaling":
		return "all", allowance{burst: 100, refill: 10}
	case "eks":
		if rq.Operation.Effect == wire.Writes {
			return rq.Operation.Name, allowance{burst: 10, refill: 2}
		}
		return rq.Operation.Name, allowance{burst: 50, refill: 10}
	case "ssm":
		return "all", allowance{burst: 40, refill: 40}
	case "dynamodb": // the account's limit; package dynamodb has the tables' limits
		return "all", allowance{burst: 40000, refill: 40000}
	case "monitoring":
		if rq.Operation.Name == "DescribeAlarms" {
			return rq.Operation.Name, allowance{burst: 9, refill: 9}
		}
		return rq.Operation.Name, allowance{burst: 3, refill: 3}
	case "iam":
		return rq.Operation.Name, allowance{burst: 50, refill: 15}
	}
	return "all", allowance{burst: 600, refill: 600}
}

// ec2Allowance returns EC2's published size for the call.
func ec2Allowance(rq *wire.Exchange) allowance {
	switch rq.Operation.Name {
	case "CreateLaunchTemplateVersion", "ModifyLaunchTemplate":
		return allowance{burst: 100, refill: 5}
	case "CreateTags", "DeleteTags":
		return allowance{burst: 100, refill: 10}
	case "RunInstances":
		return allowance{burst: 5, refill: 2}
	case "TerminateInstances":
		return allowance{burst: 100, refill: 5}
	case "DescribeInstances", "DescribeSecurityGroups":
		if !rq.Form.Has("MaxResults") && !rq.Form.Has("Filter") {
			return allowance{burst: 50, refill: 10}
		}
	}
	if rq.Operation.Effect == wire.Writes {
		return allowance{burst: 50, refill: 5}
	}
	return allowance{burst: 100, refill: 20}
}
