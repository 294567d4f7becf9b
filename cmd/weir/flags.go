package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/status/wording"
)

// passFlags are the flags of commands that plan or apply (plan, apply, adopt, simulate and status). They
// select targets of a configuration, or a directory.
type passFlags struct {
	config   string
	region   string
	target   string
	instance string
	vars     varFlags
	// kubeconfig is the kubeconfig of the cluster that the machines of PATH join.
	kubeconfig string
	kmsKeys    []string
	prune      bool
	endpoint   string
	// writes says that the command changes AWS.
	writes bool
}

func (p *passFlags) add(c *cobra.Command, s surroundings) {
	p.addWithoutPrune(c, s)
	c.Flags().BoolVar(&p.prune, "prune", false, "delete what PATH no longer wants, within the limit of 20 % of the pools")
}

// addWithoutPrune adds all flags except --prune, for commands that never delete resources of AWS: status and
// adopt.
func (p *passFlags) addWithoutPrune(c *cobra.Command, s surroundings) {
	f := c.Flags()
	f.StringVar(&p.config, "config", "", "configuration file; the arguments are then names of its targets (default: all)")
	f.StringVar(&p.region, "region", "", "AWS region to apply PATH to (default: AWS_REGION)")
	f.StringVar(&p.target, "target", "", "name of the target for PATH (default: the directory's name)")
	f.StringVar(&p.instance, "instance", fleet.PathInstance, "owner of the resources of PATH")
	p.vars.add(c)
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster that the machines of PATH join, to read its nodes and keep join tokens")
	f.StringArrayVar(&p.kmsKeys, "kms-key-arn", nil, "`ARN` of a KMS key that may decrypt SOPS files of PATH; may be repeated")
	f.StringVar(&p.endpoint, "endpoint-url", "", "address to use instead of AWS, such as that of weir emulator")
	c.ValidArgsFunction = completeTargets(s, &p.config)
}

// pathOnly returns the name of a given flag that requires a PATH, empty if none exists.
func (p *passFlags) pathOnly(c *cobra.Command) string {
	return given(c, "region", "target", "instance", "var", "vars-file", "secret-vars-file", "age-key-file", "kms-key-arn", "kubeconfig", "prune")
}

// checkPathFlags rejects flags of a PATH together with a configuration.
func (p *passFlags) checkPathFlags(c *cobra.Command) error {
	if flag := p.pathOnly(c); p.config != "" && flag != "" {
		return usage("omit the flag: the configuration defines it", "%s needs a PATH, and cannot be combined with --config", flag)
	}
	return nil
}

// given returns the first of the flags that is on the command line, empty if none exists.
func given(c *cobra.Command, names ...string) string {
	for _, name := range names {
		if c.Flags().Changed(name) {
			return "--" + name
		}
	}
	return ""
}

// env returns the part of the surroundings that package workspace uses.
func (p *passFlags) env(s surroundings, log *slog.Logger) workspace.Env {
	return workspace.Env{
		Getenv: s.getenv, Secrets: s.secrets, Logger: log, Endpoint: p.endpoint,
		Note: func(text string) { fmt.Fprintln(s.stderr, wording.Clean(text)) },
	}
}

// open reads the configuration or the directory, and opens the accounts.
func (p *passFlags) open(c *cobra.Command, s surroundings, args []string, log *slog.Logger) (*workspace.Workspace, error) {
	if p.endpoint != "" {
		if err := config.CheckEndpoint(p.endpoint); err != nil {
			return nil, hinted(fmt.Errorf("--endpoint-url: %w", err), "write it like http://127.0.0.1:8345")
		}
	}
	if err := p.checkPathFlags(c); err != nil {
		return nil, err
	}
	switch {
	case p.config != "":
		cfg, err := s.loadConfig(p.config)
		if err != nil {
			return nil, err
		}
		return workspace.OpenConfig(c.Context(), p.env(s, log), cfg, args, p.writes)
	case len(args) != 1:
		return nil, usage("weir "+c.Name()+" --config FILE [TARGET…], or weir "+c.Name()+" PATH --region REGION", "give a configuration, or one PATH")
	}
	return workspace.OpenPath(c.Context(), p.env(s, log), workspace.Path{
		Path: args[0], Region: p.region, Target: p.target, Instance: p.instance, Kubeconfig: p.kubeconfig, KMSKeys: p.kmsKeys, Prune: p.prune, Writes: p.writes,
		Inputs: func() (workspace.Inputs, error) { return p.vars.read(s) },
	})
}
