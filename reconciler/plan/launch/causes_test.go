package launch

import (
	"strings"
	"testing"
)

// weir recognises AWS's words in a failed scaling activity, a nodegroup's health issue or the end of a refresh, and says what to do.
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
		"The parameter CoreCount cannot be used with the parameter InstanceType" + failed:                                                                                                     "cannot be combined",
		"Your account is currently being verified. Verification normally takes less than 2 hours" + failed:                                                                                    "aws-verification@amazon.com",
		"Your request for accessing resources in this region is being validated, and you will not be able to launch additional resources" + failed:                                            "aws-verification@amazon.com",
		"In order to use this AWS Marketplace product you need to accept terms and subscribe" + failed:                                                                                        "AWS Marketplace",
		"The image id '[ami-0123456789abcdef0]' does not exist" + failed:                                                                                                                      "image is gone",
		"The security group 'sg-1' does not exist" + failed:                                                                                                                                   "security group",
		"Instance failed to complete user's Lifecycle Action: Lifecycle Action with token e85eb647-4fe0-4909-b341-a6c42d8aba1f was abandoned: Heartbeat Timeout":                              "heartbeatTimeout",
		"Instance failed to complete user's Lifecycle Action: Lifecycle Action with token e85eb647-4fe0-4909-b341-a6c42d8aba1f was abandoned: Lifecycle Action Completed with ABANDON Result": "refused the machine",
		"Something that nobody has seen" + failed:                                                                                                                                             "",
	} {
		if got := Hint(text); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s\n got the hint: %s", text, got)
		}
	}
	for _, c := range launchCauses {
		for _, text := range []string{c.Code + ": whatever", strings.ReplaceAll(c.Text, "…", "some words")} {
			if got := CauseOf(text); got != c.Code {
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
		if got := CauseOf(c.one) == CauseOf(c.other); got != c.same {
			t.Errorf("%q and %q: the same is %v", c.one, c.other, got)
		}
	}
}
