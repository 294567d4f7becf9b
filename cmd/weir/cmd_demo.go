package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/app"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/demo"
	examplerepo "github.com/weir-gitops/weir/example-repo"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/terminal"
	"github.com/weir-gitops/weir/status/wording"
)

const demoHelp = `Run everything on this machine, without an AWS account: an embedded AWS with a fast
clock, a Git repository with the example fleet, and the daemon that follows it, with its
page. It first prints the page's address, then what to try next.

One directory has everything: the repository, the configuration and the state of AWS. It is
a temporary one, or is in /var/lib/weir if there is no place for temporary files, as in a
read-only container. The demo deletes it at the end, unless --keep or --dir is given. It
continues in a kept one.

--members 3 runs three daemons that share the work over an embedded etcd, and prints how to
kill one. The pages of the other two show which of them takes its work.`

// mostMembers is the maximum number of processes in a demo.
const mostMembers = 9

func demoCommand(s surroundings) *cobra.Command {
	var dir string
	var keep bool
	var several int
	logs := logFlags{}
	c := &cobra.Command{
		Use:     "demo [flags]",
		Short:   "run everything on this machine, with a page to open",
		Long:    demoHelp,
		Example: "  weir demo\n  weir demo --dir ~/weir-demo\n  weir demo --members 3",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" {
				made, err := demoDir()
				if err != nil {
					return err
				}
				dir = made
				if !keep {
					defer func() { _ = os.RemoveAll(made) }() // the system cleans up anything that is left
				}
			}
			switch {
			case several == 1:
				return runDemo(c.Context(), s, dir, &logs)
			case several < 1 || several > mostMembers:
				return usage("write --members 3", "--members cannot be %d: it is 1 to %d", several, mostMembers)
			}
			return runMembers(c.Context(), s, dir, several)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "directory of the demo (default: a temporary one)")
	c.Flags().IntVar(&several, "members", 1, "how many daemons share the work")
	c.Flags().BoolVar(&keep, "keep", false, "keep the temporary directory")
	logs.add(c)
	logs.level = "warn"
	c.Flags().Lookup("log-level").DefValue = "warn"
	return c
}

// demoDir creates a directory: in the system's place for temporary files, or else in the state directory, which alone
// can be written in a container with a read-only root.
func demoDir() (string, error) {
	const pattern = "weir-demo-"
	dir, err := os.MkdirTemp("", pattern)
	if err == nil {
		return dir, nil
	}
	if dir, err := os.MkdirTemp(config.SystemStateDir, pattern); err == nil {
		return dir, nil
	}
	return "", fmt.Errorf("make demo: %w: write --dir DIRECTORY, or in a container mount a volume at %s that user %d can write to", err, config.SystemStateDir, os.Getuid())
}

// runDemo runs a daemon with an embedded AWS and an example repository in dir, until ctx ends.
func runDemo(ctx context.Context, s surroundings, dir string, logs *logFlags) error {
	d, err := demo.New(ctx, dir, examplerepo.Files)
	if err != nil {
		return err
	}
	log, err := logs.logger(s)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	cfg, err := s.loadConfig(d.Config)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	a, err := app.New(ctx, app.Options{
		Config: cfg, Load: func() (*config.Config, error) { return reloadConfig(d.Config, s.env(), log) },
		Logger: log, Getenv: s.getenv, Version: buildOf().Version, Listen: d.Listen,
	})
	if err != nil {
		return errors.Join(err, d.Close())
	}
	// AWS must outlive the daemon, which finishes its last call.
	awsContext, stopAWS := context.WithCancel(context.WithoutCancel(ctx))
	awsEnded := make(chan error, 1)
	go func() { awsEnded <- d.AWS.Run(awsContext) }()
	fmt.Fprintln(s.stdout, a.PageURL())
	fmt.Fprint(s.stdout, d.NextSteps(callName()), "\n")

	watching, stopWatching := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		watchPools(watching, s, a)
	}()
	err = a.Run(ctx)
	stopWatching()
	<-watched
	stopAWS()
	return errors.Join(err, <-awsEnded)
}

// callName returns the name with which a user calls this program in a shell.
func callName() string {
	self, err := os.Executable()
	if err != nil {
		return "weir"
	}
	if found, err := exec.LookPath("weir"); err == nil {
		if a, errA := os.Stat(found); errA == nil {
			if b, errB := os.Stat(self); errB == nil && os.SameFile(a, b) {
				return "weir"
			}
		}
	}
	return filepath.Clean(self)
}

// watchPools prints changes of pools until ctx ends. It also prints once that all pools are running.
func watchPools(ctx context.Context, s surroundings, a *app.App) {
	start, announced := time.Now(), false
	said := map[string]string{}
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		pools := a.Pools()
		converged := 0
		for _, p := range pools {
			state := terminal.PoolState(p)
			if p.Converged {
				converged++
				state = "converged, " + state
			}
			if key := p.Target + " " + p.Namespace + "/" + p.Name; said[key] != state {
				said[key] = state
				fmt.Fprintf(s.stdout, "%s  %s  %s\n", time.Now().Format(time.TimeOnly), wording.Clean(key), state)
			}
		}
		if !announced && len(pools) > 0 && converged == len(pools) && allRun(pools) && a.Ready() {
			announced = true
			fmt.Fprintf(s.stdout, "All %s are running, after %s: %s\n", wording.Count(len(pools), "pool"), time.Since(start).Round(100*time.Millisecond), strings.TrimSuffix(a.PageURL(), "/"))
		}
	}
}

func allRun(pools []plan.PoolStatus) bool {
	for _, p := range pools {
		if p.Phase != plan.PhaseRunning {
			return false
		}
	}
	return true
}
