package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/show"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
)

const statusHelp = `Show how every pool stands.

Without arguments a running daemon is asked, at --address. With --config the daemon
that it configures is asked, and where none answers, AWS is read directly, as it is
for a PATH or with --endpoint-url; nothing is changed. TARGETs limit what is shown.`

func statusCommand(s surroundings) *cobra.Command {
	var flags passFlags
	var output, address string
	c := &cobra.Command{
		Use:   "status [--address URL | --config FILE] [TARGET…] | PATH --region REGION [flags]",
		Short: "show how every pool stands",
		Long:  statusHelp,
		Example: `  weir status
  weir status --address http://weir.internal:8344 prod -o json
  weir status overlays/prod --region eu-west-1`,
		Args: cobra.ArbitraryArgs,
	}
	flags.addReading(c, s)
	c.Flags().StringVar(&address, "address", "", "address of a running daemon (default: http://"+config.DefaultListen+")")
	outputFlag(c, &output, outputText, outputJSON, outputYAML)
	c.RunE = func(c *cobra.Command, args []string) error {
		found, err := readStanding(c, s, &flags, address, args)
		if err != nil {
			return err
		}
		code := exitOK
		for _, f := range found.unplanned {
			code = exitError
			fmt.Fprintf(s.stderr, "target %s:\n", show.Clean(f.target))
			s.printer(s.stderr).Diagnostics(f.diagnostics)
		}
		if output != outputText {
			return errors.Join(s.value(output, show.Standing(found.Pools, found.LaunchConfigs)), withCode(code))
		}
		s.printer(s.stdout).Pools(found.Pools)
		s.printer(s.stdout).LaunchConfigs(found.LaunchConfigs)
		return withCode(code)
	}
	return c
}

// standing is how pools stand. Pools and LaunchConfigs are what a daemon answers
// at /api/v1/pools; unplanned are the targets of which nothing could be planned.
type standing struct {
	Pools         []plan.PoolStatus         `json:"pools"`
	LaunchConfigs []plan.LaunchConfigStatus `json:"launchConfigs"`
	unplanned     []unplanned
}

type unplanned struct {
	target      string
	diagnostics diag.List
}

// readStanding asks a daemon or reads AWS.
func readStanding(c *cobra.Command, s surroundings, flags *passFlags, address string, args []string) (standing, error) {
	ctx := c.Context()
	if err := flags.fits(c); err != nil {
		return standing{}, err
	}
	reading := flags.pathOnly(c)
	if reading == "" {
		reading = given(c, "endpoint-url")
	}
	switch {
	case address != "" && reading != "":
		return standing{}, usage("leave one of them out", "%s is for reading AWS, and --address for asking a daemon", reading)
	case address != "" && flags.config != "":
		return standing{}, usage("leave one of them out", "--address and --config both say which daemon to ask")
	case address != "":
		return askDaemon(ctx, address, args)
	case flags.config != "" && reading != "":
		// An endpoint is asked for that the daemon may not have.
	case flags.config != "":
		cfg, err := s.loadConfig(flags.config)
		if err != nil {
			return standing{}, err
		}
		found, err := askDaemon(ctx, reachable("http://"+cfg.Listen), args)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return found, err
		}
		fmt.Fprintf(s.stderr, "no daemon answers at %s; reading AWS\n", cfg.Listen)
	case reading == "" && !isPath(args):
		found, err := askDaemon(ctx, "http://"+config.DefaultListen, args)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return standing{}, hinted(err, "start weir run, or give its --address, or a PATH and --region to read AWS directly")
		}
		return found, err
	}
	w, err := flags.open(c, s, args, s.quiet())
	if err != nil {
		return standing{}, err
	}
	defer w.close()
	var found standing
	for _, r := range w.pass(ctx, reconciler.PlanOnly) {
		found.Pools = append(found.Pools, r.Pools...)
		found.LaunchConfigs = append(found.LaunchConfigs, r.LaunchConfigs...)
		if r.Err != nil || r.Plan == nil {
			found.unplanned = append(found.unplanned, unplanned{r.Target, show.PlanOf(r).Diagnostics})
		}
	}
	return found, nil
}

func isPath(args []string) bool {
	if len(args) != 1 {
		return false
	}
	_, err := os.Stat(args[0])
	return err == nil
}
