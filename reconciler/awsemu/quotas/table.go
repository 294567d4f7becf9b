package quotas

import (
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// quota is one of AWS's quotas.
type quota struct {
	service, code string
	title         string
	usual         float64 // AWS's default for a new account
	name          string  // the emulator's quota with the applied value
	class         string  // class of a vCPU quota's usage metric, "" for none
}

// quotas returns the quotas that the emulator's services enforce.
func quotas() []quota {
	return []quota{
		{"ec2", "L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 5, "vcpus-standard", "Standard/OnDemand"},
		{"ec2", "L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 5, "vcpus-standard-spot", "Standard/Spot"},
		{"ec2", "L-DB2E81BA", "Running On-Demand G and VT instances", 0, "vcpus-g", "G/OnDemand"},
		{"ec2", "L-3819A6DF", "All G and VT Spot Instance Requests", 0, "vcpus-g-spot", "G/Spot"},
		{"ec2", "L-417A185B", "Running On-Demand P instances", 0, "vcpus-p", "P/OnDemand"},
		{"ec2", "L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests", 0, "vcpus-p-spot", "P/Spot"},
		{"ec2", "L-C4BD4855", "All P5 Spot Instance Requests", 0, "vcpus-p5-spot", "P5/Spot"},
		{"ec2", "L-1945791B", "Running On-Demand Inf instances", 0, "vcpus-inf", "Inf/OnDemand"},
		{"ec2", "L-B5D1601B", "All Inf Spot Instance Requests", 0, "vcpus-inf-spot", "Inf/Spot"},
		{"ec2", "L-2C3B7624", "Running On-Demand Trn instances", 0, "vcpus-trn", "Trn/OnDemand"},
		{"ec2", "L-6B0D517C", "All Trn Spot Instance Requests", 0, "vcpus-trn-spot", "Trn/Spot"},
		{"autoscaling", "L-CDE20ADC", "Auto Scaling groups per region", 500, "auto-scaling-groups", ""},
		{"autoscaling", "L-6B80B8FA", "Launch configurations per region", 200, "launch-configurations", ""},
		{"eks", "L-1194D53C", "Clusters", 100, "clusters", ""},
		{"eks", "L-6D54EA21", "Managed node groups per cluster", 30, "nodegroups-per-cluster", ""},
		{"eks", "L-BD136A63", "Nodes per managed node group", 450, "nodes-per-nodegroup", ""},
		{"dynamodb", "L-F98FE922", "Maximum number of tables", 2500, "dynamodb-tables", ""},
		{"vpc", "L-F678F1CE", "VPCs per Region", 5, "vpcs", ""},
		{"vpc", "L-407747CB", "Subnets per VPC", 200, "subnets-per-vpc", ""},
		{"vpc", "L-E79EC296", "VPC security groups per Region", 2500, "security-groups", ""},
	}
}

// serviceName returns the name of the service with the code.
func serviceName(code string) string {
	return map[string]string{
		"ec2": "Amazon Elastic Compute Cloud (Amazon EC2)", "autoscaling": "Amazon EC2 Auto Scaling",
		"dynamodb": "Amazon DynamoDB",
		"eks":      "Amazon Elastic Kubernetes Service (Amazon EKS)", "vpc": "Amazon Virtual Private Cloud (Amazon VPC)",
	}[code]
}

// byCode returns a service's quotas. A service without quotas here has none.
func byCode(service string) *world.Table[*quota] {
	rows := &world.Table[*quota]{}
	for _, q := range quotas() {
		if q.service == service {
			rows.Put(q.code, &q)
		}
	}
	return rows
}

// shown returns a quota in the form of answers. A default does not belong to an account.
func (q *quota) shown(r *Region, applied bool) map[string]any {
	account, value := "", q.usual
	if applied {
		account, value = r.Account, float64(r.Quota(q.name))
	}
	out := map[string]any{
		"ServiceCode": q.service, "ServiceName": serviceName(q.service), "QuotaCode": q.code, "QuotaName": q.title,
		"QuotaArn": "arn:" + world.Partition(r.Name) + ":servicequotas:" + r.Name + ":" + account + ":" + q.service + "/" + q.code,
		"Value":    value, "Unit": "None", "Adjustable": true, "GlobalQuota": false, "QuotaAppliedAtLevel": "ACCOUNT",
	}
	if q.class != "" {
		out["UsageMetric"] = map[string]any{
			"MetricNamespace": "AWS/Usage", "MetricName": "ResourceCount", "MetricStatisticRecommendation": "Maximum",
			"MetricDimensions": map[string]string{"Service": "EC2", "Type": "Resource", "Resource": "vCPU", "Class": q.class},
		}
	}
	return out
}
