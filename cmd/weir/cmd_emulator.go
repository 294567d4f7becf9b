package main

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/embedded"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

const emulatorHelp = `Run the embedded AWS by itself: EC2 launch templates and instances, Auto Scaling, EKS,
SSM, KMS, STS, DynamoDB tables and items, CloudWatch alarms, reads of IAM, Elastic Load
Balancing and Service Quotas over their own wire protocols, for weir, the AWS CLI, SDKs
and other tools. The account is 000000000000; every region has a default VPC with three
zones, images of both architectures with their SSM parameters, Cluster API's roles, and
an EKS cluster named demo. It takes any credentials.

It prints its address first. With --state it reads its state from a file, and saves it
there while it changes and when weir stops.

With --faults, requests fail as a JSON file says; a change of the file, or its removal,
counts from the next request on. A missing selector fits all; a code such as
Client.InternalError ends machines that have started.

  {"launches":   [{"instanceType": "m5.large", "availabilityZone": "eu-west-1a", "imageId": "ami-…",
                   "code": "VcpuLimitExceeded", "message": "…"}, {"stuck": true}],
   "hooks":      [{"group": "web", "result": "ABANDON"}],
   "nodegroups": [{"cluster": "demo", "nodegroup": "web", "issue": "NodeCreationFailure", "message": "…"}]}`

func emulatorCommand(s surroundings) *cobra.Command {
	var o embedded.Options
	var quotas []string
	c := &cobra.Command{
		Use:   "emulator --listen ADDRESS [flags]",
		Short: "run the embedded AWS by itself",
		Long:  emulatorHelp,
		Example: `  weir emulator --listen 127.0.0.1:8345 --state aws.json
  weir emulator --listen :8345 --realtime --throttle --quota auto-scaling-groups=5`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Listen == "" {
				return usage("weir emulator --listen 127.0.0.1:8345", "--listen is required")
			}
			var err error
			if o.Quotas, err = parseQuotas(quotas); err != nil {
				return err
			}
			o.Logger = slog.New(slog.NewTextHandler(s.stderr, nil))
			server, err := embedded.New(c.Context(), o)
			if err != nil {
				return err
			}
			fmt.Fprint(s.stdout, emulatorHints(server.URL()))
			return server.Run(c.Context())
		},
	}
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		c.Parent().HelpFunc()(c, args)
		fmt.Fprint(c.OutOrStdout(), emulatorOperations())
	})
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", "", "address to listen on, such as 127.0.0.1:8345; port 0 takes a free one")
	f.StringVar(&o.State, "state", "", "file for the state (default: in memory only)")
	f.StringVar(&o.Seed, "seed", "", "JSON file with resources to add to the seeded ones")
	f.StringVar(&o.Faults, "faults", "", "JSON file with faults, read again at every request")
	f.BoolVar(&o.Realtime, "realtime", false, "take as long as AWS instead of a few seconds")
	f.BoolVar(&o.Throttle, "throttle", false, "throttle as AWS does")
	f.StringArrayVar(&quotas, "quota", nil, "override a quota, `NAME=N`; may be repeated. Names: "+strings.Join(world.QuotaNames(), ", "))
	return c
}

// emulatorOperations lists the operations that the emulator supports, by service.
func emulatorOperations() string {
	var b strings.Builder
	b.WriteString("\nOperations:\n")
	operations := awsemu.Operations()
	for _, service := range slices.Sorted(maps.Keys(operations)) {
		line := "  " + service + ":"
		for _, name := range operations[service] {
			if len(line)+1+len(name) > 100 {
				b.WriteString(line + "\n")
				line = "   "
			}
			line += " " + name
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

func parseQuotas(flags []string) (map[string]int, error) {
	out := map[string]int{}
	for _, q := range flags {
		name, number, ok := strings.Cut(q, "=")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n < 0 {
			return nil, usage("write it like --quota auto-scaling-groups=5", "--quota %q is not NAME=N", q)
		}
		out[name] = n
	}
	return out, nil
}

// emulatorHints returns the address, and complete command lines.
func emulatorHints(url string) string {
	url = "http://" + config.Reachable(strings.TrimPrefix(url, "http://"))
	const try = `
The emulator accepts any credentials, but the AWS CLI needs some:

  export AWS_ACCESS_KEY_ID=weir AWS_SECRET_ACCESS_KEY=weir AWS_DEFAULT_REGION=eu-west-1
  aws --endpoint-url %[1]s sts get-caller-identity
  aws --endpoint-url %[1]s ec2 describe-launch-templates
  aws --endpoint-url %[1]s autoscaling describe-auto-scaling-groups
  aws --endpoint-url %[1]s eks describe-cluster --name demo
`
	return url + "\n" + fmt.Sprintf(try, url)
}
