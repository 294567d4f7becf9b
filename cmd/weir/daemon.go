package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/client"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/terminal"
)

// serverFlags selects the daemon to ask and the user.
type serverFlags struct{ address, tokenFile, caFile string }

func (f *serverFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.address, "server", "", "address of the daemon, such as https://weir.example.com (default: $WEIR_SERVER, else http://"+config.DefaultListen+")")
	c.Flags().StringVar(&f.address, "address", "", "the same as --server")
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "file with the token to send (default: $WEIR_TOKEN_FILE)")
	c.Flags().StringVar(&f.caFile, "ca-file", "", "PEM file of certificate authorities to trust in addition to the system's")
}

// daemonOf returns the daemon that flags, a configuration or the environment name.
func (s surroundings) daemonOf(f serverFlags, c *config.Config) (client.Client, error) {
	return client.Find(client.Options{Address: f.address, TokenFile: f.tokenFile, CAFile: f.caFile, Getenv: s.getenv}, c)
}

// targetAnswer is the part of a response of /api/v1/targets that commands use. Plan is null if nothing
// could be planned, and before the first pass.
type targetAnswer struct {
	Name        string       `json:"name"`
	Phase       string       `json:"phase"`
	Suspended   bool         `json:"suspended"`
	LastPass    time.Time    `json:"lastPass"`
	PoolsAt     time.Time    `json:"poolsAt"`
	Error       string       `json:"error"`
	Diagnostics diag.List    `json:"diagnostics"`
	Revision    string       `json:"revision"`
	HeldTo      *report.Kept `json:"heldTo"`
	Plan        *struct {
		Digest string      `json:"digest"`
		Steps  []step.Step `json:"steps"`
	} `json:"plan"`
}

// askServer asks the daemon that flags or a configuration name.
func (s surroundings) askServer(ctx context.Context, f serverFlags, c *config.Config, names []string) (standing, error) {
	d, err := s.daemonOf(f, c)
	if err != nil {
		return standing{}, err
	}
	return askDaemon(ctx, d, names)
}

// askDaemon asks a daemon for the state of the named targets, or of all.
func askDaemon(ctx context.Context, d client.Client, names []string) (standing, error) {
	var found standing
	if err := d.Ask(ctx, "/api/v1/pools", &found); err != nil {
		return standing{}, err
	}
	var all struct {
		Held    string         `json:"held"`
		Targets []targetAnswer `json:"targets"`
	}
	if err := d.Ask(ctx, "/api/v1/targets", &all); err != nil {
		return standing{}, err
	}
	if found.Pools == nil || all.Targets == nil {
		return standing{}, d.NotWeir()
	}
	for _, name := range names {
		if !slices.ContainsFunc(all.Targets, func(t targetAnswer) bool { return t.Name == name }) {
			var known []string
			for _, t := range all.Targets {
				known = append(known, t.Name)
			}
			return standing{}, usage(advice.DidYouMean(name, known, "weir status shows them all"), "the daemon has no target %q", name)
		}
	}
	found.held = all.Held
	left := func(target string) bool { return len(names) > 0 && !slices.Contains(names, target) }
	found.Pools = slices.DeleteFunc(found.Pools, func(p plan.PoolStatus) bool { return left(p.Target) })
	found.LaunchConfigs = slices.DeleteFunc(found.LaunchConfigs, func(l plan.LaunchConfigStatus) bool { return left(l.Target) })
	found.marks = terminal.Marks{Seen: map[string]time.Time{}, Now: time.Now()}
	for _, t := range all.Targets {
		if left(t.Name) {
			continue
		}
		found.marks.Seen[t.Name] = t.LastPass
		if !t.PoolsAt.IsZero() {
			found.marks.Seen[t.Name] = t.PoolsAt
		}
		of := terminal.Target{
			Name: t.Name, Phase: t.Phase, Revision: t.Revision, LastPass: t.LastPass, Suspended: t.Suspended,
			Failed: t.Phase == string(report.Failing), Stale: t.PoolsAt.Before(t.LastPass), Diagnostics: t.Diagnostics, HeldTo: t.HeldTo,
		}
		if t.Error != "" {
			of.Diagnostics = append(diag.List{{Severity: diag.Error, Code: "failed", Summary: t.Error}}, t.Diagnostics...)
		}
		if t.Plan != nil {
			of.Digest = t.Plan.Digest
			found.marks.Add(t.Name, t.Plan.Steps)
		}
		found.add(of)
	}
	return found, nil
}
