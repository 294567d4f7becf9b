package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/app"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/gctuning"
	"github.com/weir-gitops/weir/render/kust/worker"
	"github.com/weir-gitops/weir/status/terminal"
)

const runHelp = `Run the daemon: follow the configured sources, apply their targets, keep AWS in sync
with Git, and report as commit statuses, on a page and as metrics.

It prints the address of the page first, and writes its log to standard error. On SIGTERM or
Ctrl-C it finishes the AWS call that is under way, starts no other, and leaves no commit
status pending. A second signal ends it at once. On SIGHUP or a change of the file it
reloads the configuration, and reads and tries all credentials again. If the new
configuration has a fault, weir refuses it as a whole and keeps the old one.

If a service manager sets NOTIFY_SOCKET, such as systemd with Type=notify, weir reports that
it is ready once the page listens and the state is read, before the first pass. It then
reports the progress of that pass and, with WATCHDOG_USEC, that the loop is alive. /readyz
succeeds once every target has had its first pass.`

func runCommand(s surroundings) *cobra.Command {
	var file, profile string
	var logs logFlags
	c := &cobra.Command{
		Use:     "run --config FILE [flags]",
		Short:   "run the daemon",
		Long:    runHelp,
		Example: "  weir run --config /etc/weir/weir.yaml",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return usage("weir run --config FILE", "--config is required")
			}
			log, err := logs.logger(s)
			if err != nil {
				return err
			}
			if _, err := s.loadConfig(file); err != nil {
				return err
			}
			env := s.env()
			env.Files = true
			cfg, err := reloadConfig(file, env, log)
			if err != nil {
				return err
			}
			hangups := make(chan os.Signal, 1)
			signal.Notify(hangups, syscall.SIGHUP)
			defer signal.Stop(hangups)
			if profile != "" {
				runtime.MemProfileRate = memProfileRate
			}
			a, err := app.New(c.Context(), app.Options{
				Config: cfg, Load: func() (*config.Config, error) { return reloadConfig(file, env, log) },
				Reload: hangups, Logger: log, Secrets: s.secrets, Getenv: s.getenv, Version: buildOf().Version,
				Member: s.member, LeaseClock: s.clock,
			})
			if err != nil {
				return startHint(err)
			}
			if profile != "" {
				stop, err := profileServer(c.Context(), profile, log)
				if err != nil {
					return errors.Join(err, a.Stop(c.Context()))
				}
				defer stop()
			}
			fmt.Fprintln(s.stdout, a.PageURL())
			go worker.Warm(c.Context(), log)
			go gctuning.GiveBack(c.Context())
			return a.Run(c.Context())
		},
	}
	c.Flags().StringVar(&file, "config", "", "configuration file")
	c.Flags().StringVar(&profile, "profile-listen", "", "serve Go's profiles at this `ADDRESS` of the loopback interface, such as 127.0.0.1:6060 (default: nowhere)")
	logs.add(c)
	return c
}

// reloadConfig reads the configuration of a running daemon and logs its errors.
func reloadConfig(file string, env config.Env, log *slog.Logger) (*config.Config, error) {
	c, faults, err := config.Load(file, env)
	if err != nil {
		return nil, err
	}
	for _, f := range faults {
		if f.Severity != diag.Error {
			log.Warn("remark about the configuration", "remark", f.String(), "detail", f.Detail)
			continue
		}
		log.Error("error in the configuration", "fault", f.String(), "detail", f.Detail)
	}
	if c == nil {
		return nil, errors.New("read configuration: " + firstFault(faults))
	}
	return c, nil
}

// startHint returns the remedy for an error that prevents the start of a daemon.
func startHint(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return hinted(err, "another program listens there, perhaps another weir: stop it, or set another listen in the configuration")
	case errors.Is(err, state.ErrInUse):
		return hinted(err, "only one daemon may use a state directory: stop the other one, or give this one another stateDir and instance")
	case errors.Is(err, fs.ErrPermission):
		return hinted(err, "let the user who runs weir read and write it")
	}
	return err
}

// firstFault returns the first error with its position, and the number of further errors. The report of a
// rejected configuration must be sufficient to fix it.
func firstFault(faults diag.List) string {
	n := faults.Count(diag.Error)
	for _, f := range faults {
		if f.Severity == diag.Error && n > 1 {
			return fmt.Sprintf("%s (and %d more)", f, n-1)
		} else if f.Severity == diag.Error {
			return f.String()
		}
	}
	return terminal.CountDiagnostics(faults)
}
