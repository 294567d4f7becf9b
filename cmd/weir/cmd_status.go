package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/show"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
)

const statusHelp = `Show how every pool stands.

Without arguments a running daemon is asked, at --address. With --config the daemon
that it configures is asked, and where none answers, AWS is read directly, as it is
for a PATH or with --endpoint-url; nothing is changed. TARGETs limit what is shown.`

// apiTimeout bounds the question to a daemon, maxAnswer its answer in bytes.
const (
	apiTimeout = 10 * time.Second
	maxAnswer  = 256 << 20
)

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
	outputFlag(c, &output, outputText, outputJSON)
	c.RunE = func(c *cobra.Command, args []string) error {
		found, err := readPools(c, s, &flags, address, args)
		var partly codeError
		if err != nil && !errors.As(err, &partly) {
			return err
		}
		if output == outputJSON {
			return errors.Join(show.PoolsJSON(s.stdout, found.Pools, found.LaunchConfigs), err)
		}
		s.printer(s.stdout).Pools(found.Pools)
		s.printer(s.stdout).LaunchConfigs(found.LaunchConfigs)
		return err
	}
	return c
}

// standing is what a daemon answers at /api/v1/pools.
type standing struct {
	Pools         []plan.PoolStatus         `json:"pools"`
	LaunchConfigs []plan.LaunchConfigStatus `json:"launchConfigs"`
}

// readPools returns the pools of a daemon or of AWS. Where some targets cannot be
// read, it says why and returns the rest with a codeError.
func readPools(c *cobra.Command, s surroundings, flags *passFlags, address string, args []string) (standing, error) {
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
		return askTargets(ctx, address, args)
	case flags.config != "" && reading != "":
		// An endpoint is asked for that the daemon may not have.
	case flags.config != "":
		cfg, err := s.loadConfig(flags.config)
		if err != nil {
			return standing{}, err
		}
		found, err := askTargets(ctx, reachable("http://"+cfg.Listen), args)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return found, err
		}
		fmt.Fprintf(s.stderr, "no daemon answers at %s; reading AWS\n", cfg.Listen)
	case reading == "" && !isPath(args):
		found, err := askTargets(ctx, "http://"+config.DefaultListen, args)
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
	code := exitOK
	for _, r := range w.pass(ctx, reconciler.PlanOnly) {
		found.Pools = append(found.Pools, r.Pools...)
		found.LaunchConfigs = append(found.LaunchConfigs, r.LaunchConfigs...)
		if r.Err != nil || r.Plan == nil {
			code = exitError
			fmt.Fprintf(s.stderr, "target %s:\n", show.Clean(r.Target))
			s.printer(s.stderr).Diagnostics(show.PlanOf(r).Diagnostics)
		}
	}
	return found, withCode(code)
}

func isPath(args []string) bool {
	if len(args) != 1 {
		return false
	}
	_, err := os.Stat(args[0])
	return err == nil
}

// askTargets asks a daemon for the pools of the named targets, or of all.
func askTargets(ctx context.Context, address string, targets []string) (standing, error) {
	all, err := askPools(ctx, address)
	if err != nil || len(targets) == 0 {
		return all, err
	}
	for _, t := range targets {
		if !slices.ContainsFunc(all.Pools, func(p plan.PoolStatus) bool { return p.Target == t }) {
			return standing{}, usage("weir status shows them all", "the daemon knows no pool of a target %q", t)
		}
	}
	all.Pools = slices.DeleteFunc(all.Pools, func(p plan.PoolStatus) bool { return !slices.Contains(targets, p.Target) })
	all.LaunchConfigs = slices.DeleteFunc(all.LaunchConfigs, func(l plan.LaunchConfigStatus) bool { return !slices.Contains(targets, l.Target) })
	return all, nil
}

func askPools(ctx context.Context, address string) (standing, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(address, "/")+"/api/v1/pools", nil)
	if err != nil {
		return standing{}, hinted(errors.New("ask daemon: --address is no URL"), "write it like http://weir.internal:8344")
	}
	// From here on it is shown, and who may ask is nobody else's business.
	shown := *req.URL
	shown.User, shown.RawQuery, shown.Path = nil, "", ""
	address = shown.String()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		var failed *url.Error // it repeats the address with the user in it
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return standing{}, fmt.Errorf("ask daemon at %s: %w", address, err)
	}
	defer func() { _ = res.Body.Close() }() // read to its end below
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return standing{}, fmt.Errorf("ask daemon at %s: %w", address, err)
	}
	if res.StatusCode != http.StatusOK {
		return standing{}, fmt.Errorf("ask daemon at %s: it answers %s", address, res.Status)
	}
	var answer standing
	if err := json.Unmarshal(body, &answer); err != nil || answer.Pools == nil {
		return standing{}, hinted(fmt.Errorf("ask daemon at %s: the answer is not that of weir", address), "check --address")
	}
	return answer, nil
}
