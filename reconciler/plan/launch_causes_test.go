package plan

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// What AWS writes into a failed scaling activity, a nodegroup's health issue or the
// end of a refresh is known by its words, and what to do is said.
func TestLaunchHints(t *testing.T) {
	const fleet, failed, died = "Could not launch Spot Instances. ", ". Launching EC2 instance failed.", "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: "
	for text, want := range map[string]string{
		"We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested (us-east-1a). Our system will be working on provisioning additional capacity" + failed: "name further types",
		fleet + "InsufficientInstanceCapacity - There is no Spot capacity available that matches your request" + failed:                                                                       "part of the pool On-Demand",
		fleet + "UnfulfillableCapacity - Unable to fulfill capacity due to your request configuration. Please adjust your request and try again" + failed:                                     "part of the pool On-Demand",
		"You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to" + failed:                        "Service Quotas",
		"You have requested more instances (7) than your current instance limit of 6 allows for the specified instance type" + failed:                                                         "Service Quotas",
		"Max spot instance count exceeded" + failed: "quota of Spot vCPUs",
		fleet + "SpotMaxPriceTooLow - Your Spot request price of 0.01 is lower than the minimum required Spot request fulfillment price of 0.05" + failed:                                     "spotMarketOptions.maxPrice",
		"There are not enough free addresses in subnet 'subnet-66d3dd2c' to satisfy the requested number of instances" + failed:                                                               "further subnets",
		died + "Client.VolumeLimitExceeded: Volume limit exceeded":                                                                                                                            "Amazon EBS",
		died + "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state":                                                                                             "AWSServiceRoleForAutoScaling",
		died + "Client.InvalidKMSKey.InvalidKeyUsage: The KMS key has the wrong usage":                                                                                                        "AWSServiceRoleForAutoScaling",
		died + "Client.InternalError: Client error on launch":                                                                                                                                 "AWSServiceRoleForAutoScaling",
		died + "Server.InternalError: Internal error on launch":                                                                                                                               "AWS's support",
		died + "Client.InstanceInitiatedShutdown: Instance initiated shutdown":                                                                                                                "bootstrap data",
		fleet + "InvalidFleetConfiguration - Your requested instance type (p3.8xlarge) is not supported in your requested Availability Zone (us-east-2c)" + failed:                            "describe-instance-type-offerings",
		"The requested configuration is currently not supported. Please check the documentation for supported configurations" + failed:                                                        "describe-instance-type-offerings",
		"The parameter CoreCount cannot be used with the parameter InstanceType" + failed:                                                                                                     "do not go together",
		"Your account is currently being verified. Verification normally takes less than 2 hours" + failed:                                                                                    "aws-verification@amazon.com",
		"Your request for accessing resources in this region is being validated, and you will not be able to launch additional resources" + failed:                                            "aws-verification@amazon.com",
		"In order to use this AWS Marketplace product you need to accept terms and subscribe" + failed:                                                                                        "AWS Marketplace",
		"The image id '[ami-0123456789abcdef0]' does not exist" + failed:                                                                                                                      "image is gone",
		"The security group 'sg-1' does not exist" + failed:                                                                                                                                   "security group",
		"Instance failed to complete user's Lifecycle Action: Lifecycle Action with token e85eb647-4fe0-4909-b341-a6c42d8aba1f was abandoned: Heartbeat Timeout":                              "heartbeatTimeout",
		"Instance failed to complete user's Lifecycle Action: Lifecycle Action with token e85eb647-4fe0-4909-b341-a6c42d8aba1f was abandoned: Lifecycle Action Completed with ABANDON Result": "refused the machine",
		"Something that nobody has seen" + failed:                                                                                                                                             "",
	} {
		if got := LaunchHint(text); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s\n got the hint: %s", text, got)
		}
	}
	for _, c := range launchCauses {
		for _, text := range []string{c.Code + ": whatever", strings.ReplaceAll(c.Text, "…", "some words")} {
			if got := launchCause(text); got != c.Code {
				t.Errorf("%q of %s is taken for %s", text, c.Code, got)
			}
		}
	}
}

// One cause is the same in each try, though its text names another machine, zone or token.
func TestLaunchCauseIsTheSameInEachTry(t *testing.T) {
	for _, c := range []struct {
		one, other string
		same       bool
	}{
		{"We currently do not have sufficient m5.xlarge capacity in the zone a", "We currently do not have sufficient c5.large capacity in the zone b", true},
		{"strange: i-0123456789abcdef0 at 10:15", "strange: i-0fedcba9876543210 at 11:02", true},
		{"strange: token e85eb647-4fe0-4909-b341-a6c42d8aba1f", "strange: token a054c99b-cda0-4210-b3c5-4774e971c307", true},
		{"We currently do not have sufficient m5.xlarge capacity in the zone a", "Max spot instance count exceeded", false},
		{"strange", "stranger", false},
	} {
		if got := launchCause(c.one) == launchCause(c.other); got != c.same {
			t.Errorf("%q and %q: the same is %v", c.one, c.other, got)
		}
	}
}

// Machines that are late say what they wait for, and those that are not say nothing.
func TestLateMachinesSayWhatTheyWaitFor(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	hook := func(name, transition string) intent.LifecycleHook {
		return intent.LifecycleHook{Name: name, LifecycleTransition: "autoscaling:EC2_INSTANCE_" + transition, HeartbeatTimeout: 1800, DefaultResult: "CONTINUE"}
	}
	for name, c := range map[string]struct {
		states []string
		hooks  []intent.LifecycleHook
		after  time.Duration
		want   string
	}{
		"in time":             {[]string{"Pending"}, nil, 4 * time.Minute, ""},
		"late":                {[]string{"InService", "Pending"}, nil, 5 * time.Minute, "03:04 UTC: i-1 is in Pending, so EC2"},
		"many":                {[]string{"Pending", "Pending", "Pending", "Pending", "Pending"}, nil, time.Hour, "i-0, i-1, i-2 and 2 more are in Pending"},
		"hooks not known":     {[]string{"Pending:Wait", "Pending"}, nil, time.Hour, "i-0 is in Pending:Wait until something completes the group's launching lifecycle hook; aws autoscaling"},
		"somebody's hook":     {[]string{"Pending:Wait", "Pending:Wait"}, []intent.LifecycleHook{hook("drain", "TERMINATING"), hook("boot", "LAUNCHING")}, time.Hour, `i-0, i-1 are in Pending:Wait until something completes the lifecycle hook "boot"; from about 2026-01-02 03:34 UTC, if it sends no heartbeat, AWS takes it into service`},
		"EKS's hook":          {[]string{"Pending:Wait"}, []intent.LifecycleHook{hook("Launch-LC-Hook", "LAUNCHING")}, time.Hour, "until its node has joined the cluster and EKS completes"},
		"all have come since": {[]string{"InService"}, nil, time.Hour, ""},
	} {
		pool := groupPool("web", "m5.large", int32(len(c.states)))
		g := observed.Group{Name: pool.Group.Name, DesiredCapacity: int32(len(c.states))}
		for i, s := range c.states {
			g.Instances = append(g.Instances, observed.Instance{ID: "i-" + strconv.Itoa(i), LifecycleState: s, Health: "Healthy"})
		}
		in := Input{Now: began.Add(c.after), State: &observed.State{
			Groups: map[string]observed.Group{g.Name: g}, Launches: map[string]observed.Launches{g.Name: {Since: began}}, Hooks: map[string]observed.GroupHooks{g.Name: {Hooks: c.hooks}},
		}}
		if got := in.pending(&pool); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
