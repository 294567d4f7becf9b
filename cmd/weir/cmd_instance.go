package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/status/instances"
)

const instanceHelp = `Show what an EC2 instance runs: its pool, the commit and the image, and why it still exists.

ID is an instance id, or its first part: i- and at least 8 hexadecimal digits.

Without --region it asks a running daemon: the one at --server, or the one of the
configuration at --config. The daemon knows the pool from its last pass. It asks AWS for
launch time, image name, market (spot or on-demand) and addresses. If AWS does not answer,
these are missing, and a note gives the reason.

With --region it asks only AWS and needs no daemon. The tags of the Auto Scaling group then
name the pool, and the description of the launch template version names the commit.

It changes nothing.
`

// instanceFlags selects the daemon, or the account and region in AWS.
type instanceFlags struct {
	serverFlags
	config, output                  string
	region, account, role, endpoint string
}

func instanceCommand(s surroundings) *cobra.Command {
	var f instanceFlags
	c := &cobra.Command{
		Use:   "instance ID [--server URL | --config FILE | --region REGION] [flags]",
		Short: "show what an EC2 instance runs, and why it still exists",
		Long:  instanceHelp + exitHelp("instance"),
		Example: `  weir instance i-0123456789abcdef0
  weir instance i-01234567 --config weir.yaml -o json
  weir instance i-0123456789abcdef0 --region eu-west-1`,
		Args: exactly(1),
	}
	f.add(c)
	flags := c.Flags()
	flags.StringVar(&f.config, "config", "", "configuration file of the daemon")
	flags.StringVar(&f.region, "region", "", "AWS region of the instance: ask only AWS")
	flags.StringVar(&f.account, "account", "", "fail unless the credentials belong to this account, with --region")
	flags.StringVar(&f.role, "role-arn", "", "role to assume for the reads, with --region")
	flags.StringVar(&f.endpoint, "endpoint-url", "", "address to use instead of AWS, such as the address of weir emulator, with --region")
	outputFlag(c, &f.output, outputText, outputJSON, outputYAML)
	c.ValidArgsFunction = completeInstances(s, &f)
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := instances.ParseID(args[0])
		if err != nil {
			return usage(instances.Hint, "%s", err)
		}
		if err := f.check(c); err != nil {
			return err
		}
		answer, err := f.find(c.Context(), s, id)
		if err != nil {
			return err
		}
		if f.output != outputText {
			return s.value(f.output, answer)
		}
		s.printer(s.stdout).Instance(answer, time.Now())
		return nil
	}
	return c
}

// check rejects flags that exclude each other or have invalid values.
func (f *instanceFlags) check(c *cobra.Command) error {
	aws := given(c, "account", "role-arn", "endpoint-url")
	daemon := given(c, "server", "address", "token-file", "ca-file", "config")
	switch {
	case f.region == "" && aws != "":
		return usage("add --region", "%s needs --region", aws)
	case f.region != "" && daemon != "":
		return usage("--region asks only AWS, and "+daemon+" selects a daemon", "--region cannot be combined with %s", daemon)
	case f.region == "":
		return nil
	case !config.ValidRegion(f.region):
		return usage("regions are named like eu-west-1", "%q does not look like a region", f.region)
	case f.account != "" && !config.ValidAccount(f.account):
		return usage("an account has twelve digits", "%q is not an AWS account", f.account)
	}
	if f.endpoint != "" {
		if err := config.CheckEndpoint(f.endpoint); err != nil {
			return hinted(fmt.Errorf("--endpoint-url: %w", err), "write it like http://127.0.0.1:8345")
		}
	}
	return nil
}

func (f *instanceFlags) find(ctx context.Context, s surroundings, id instances.ID) (instances.Answer, error) {
	if f.region != "" {
		return f.askAWS(ctx, s, id)
	}
	var answer instances.Answer
	d, _, err := s.daemonFor(f.serverFlags, f.config)
	if err != nil {
		return answer, err
	}
	err = d.Ask(ctx, "/api/v1/instances/"+url.PathEscape(id.Text), &answer)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return answer, hinted(err, "start the daemon with weir run, give its address with --server, or ask only AWS with --region")
	case err == nil && answer.Schema != instances.Schema:
		return answer, d.NotWeir()
	}
	return answer, err
}

// machineReader reads instances from AWS.
type machineReader interface {
	Machines(ctx context.Context, id string, whole bool) ([]observed.Machine, error)
	Account() string
}

// askAWS asks AWS without a daemon.
func (f *instanceFlags) askAWS(ctx context.Context, s surroundings, id instances.ID) (instances.Answer, error) {
	cloud, err := s.openAccount(ctx, reconciler.ScopeKey{Account: f.account, Region: f.region, RoleARN: f.role, Endpoint: f.endpoint})
	if err != nil {
		return instances.Answer{}, err
	}
	defer cloud.Close()
	return instanceIn(ctx, cloud, f.region, id)
}

// instanceIn finds an instance in an account and region.
func instanceIn(ctx context.Context, aws machineReader, region string, id instances.ID) (instances.Answer, error) {
	found, err := aws.Machines(ctx, id.Text, id.Whole)
	if err != nil {
		return instances.Answer{}, hinted(fmt.Errorf("read instance: %w", err), "check that the credentials have the permissions that weir policy prints, or try again if AWS throttles")
	}
	if at := slices.IndexFunc(found, func(m observed.Machine) bool { return m.ID == id.Text }); at >= 0 && len(found) > 1 {
		// A short id is also the beginning of others.
		if found, err = aws.Machines(ctx, id.Text, true); err != nil {
			return instances.Answer{}, fmt.Errorf("read instance: %w", err)
		}
	}
	switch len(found) {
	case 1:
		return instances.Of(found[0], aws.Account(), region), nil
	case 0:
		return instances.Answer{}, hinted(fmt.Errorf("account %s has no instance %s in %s", aws.Account(), id.Text, region), "check --region and the credentials; EC2 forgets an instance about an hour after it was terminated")
	}
	var matches []string
	for _, m := range found {
		matches = append(matches, m.ID)
	}
	return instances.Answer{}, hinted(errors.New(id.Ambiguous(matches)), "give more digits")
}

// completeInstances completes the ids of the instances that a daemon knows.
func completeInstances(s surroundings, f *instanceFlags) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 || f.region != "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var cfg *config.Config
		if f.config != "" {
			cfg, _, _ = config.Load(f.config, s.env()) // with an invalid configuration, there are no completions
		}
		ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
		defer cancel()
		found, err := s.askServer(ctx, f.serverFlags, cfg, nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, p := range found.Pools {
			for _, i := range p.Instances {
				if strings.HasPrefix(i.ID, prefix) {
					out = append(out, i.ID+"\t"+p.Target+" "+p.Namespace+"/"+p.Name)
				}
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
