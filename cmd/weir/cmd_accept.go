package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/client"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/accept"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/wording"
)

const acceptHelp = `Keep a change that somebody made in AWS: the daemon opens a pull request that writes it
into the manifests.

Without FIELD, the pull request covers all drift of the pool: every field that differs
although no commit changed it. With FIELD, as weir plan names it, it covers that field and
the fields below it, even if a commit changed them. weir writes each value to the line that
sets it now, or to a patch that only this target uses. It renders and plans the result
before it pushes. The pull request lists what manifests cannot express, and what else
applying it does.

Each pool has one pull request, from a branch of weir's own. weir updates it when AWS
changes, and closes it when AWS and Git agree. If somebody else pushes to the branch, weir
leaves it alone. The daemon needs accept in push.for of the source's entry of forges.

weir corrects drift within a pass. So suspend the pool first (weir suspend), and resume it
once the pull request is merged. To edit the files of a work tree instead, use
weir import --update.`

// acceptPatience is the timeout for the plans and the pushes of a pull request.
const acceptPatience = 5 * time.Minute

func acceptCommand(s surroundings) *cobra.Command {
	var flags commandFlags
	c := &cobra.Command{
		Use:   "accept TARGET POOL [FIELD…] [flags]",
		Short: "open a pull request that keeps a change made in AWS",
		Long:  acceptHelp + "\n" + exitHelp("accept"),
		Example: `  weir accept prod web
  weir accept prod fleet/web maxSize additionalTags.team`,
		Args: atLeast(2),
	}
	flags.add(c, s)
	c.ValidArgsFunction = completeFromDaemon(s, &flags.config, &flags.serverFlags, 1)
	c.RunE = func(c *cobra.Command, args []string) error {
		if flags.address != "" && flags.config != "" {
			return usage("use only one of them", "--server and --config both choose the daemon")
		}
		var cfg *config.Config
		if flags.config != "" {
			var err error
			if cfg, err = s.loadConfig(flags.config); err != nil {
				return err
			}
		}
		d, err := s.daemonOf(flags.serverFlags, cfg)
		if err != nil {
			return err
		}
		d.Patience = acceptPatience
		body, err := json.Marshal(commands.AcceptRequest{By: client.LocalUser(), Target: args[0], Pool: args[1], Fields: args[2:]})
		if err != nil {
			return err
		}
		if body, err = d.Do(c.Context(), http.MethodPost, commands.AcceptPath, body, 8<<20); errors.Is(err, syscall.ECONNREFUSED) {
			return hinted(err, "this needs a daemon: start weir run, or name one with --server or --config")
		} else if err != nil {
			return err
		}
		var out commands.Accepted
		if err := json.Unmarshal(body, &out); err != nil || out.Branch == "" {
			return d.NotWeir()
		}
		if flags.output != outputText {
			err = s.value(flags.output, out)
		} else {
			tellAccepted(s, out)
		}
		if err == nil && slices.ContainsFunc(out.Fields, func(f accept.Field) bool { return f.Left != "" }) {
			err = withCode(exitRefused)
		}
		return err
	}
	return c
}

func tellAccepted(s surroundings, out commands.Accepted) {
	for _, f := range out.Fields {
		fmt.Fprintln(s.stdout, wording.Clean(fieldLine(f)))
	}
	if len(out.More) > 0 {
		fmt.Fprintln(s.stdout, "Applying this also changes other things:")
		for _, text := range out.More {
			fmt.Fprintln(s.stdout, "  "+wording.Clean(text))
		}
	}
	fmt.Fprintf(s.stdout, "pull request #%d: %s\n", out.Number, wording.Clean(out.URL))
}

// fieldLine describes the value that accept writes for a field, or the reason why it writes none.
func fieldLine(f accept.Field) string {
	what := f.Pool + ": " + f.Field + ": "
	switch {
	case f.Left != "":
		return what + "left: " + f.Left
	case f.Value == nil:
		what += "taken out"
	default:
		what += wording.Value(f.Value)
	}
	if f.At != "" {
		what += ", in " + f.At
	}
	return what
}
