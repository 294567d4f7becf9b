package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/records"
)

const stateHelp = `Move weir's records to the place of another configuration: suspensions, approvals,
reported events, history, and the keys of digests and logins.

--config is the configuration that weir used so far, and --to the one that it will run with.
Both are for the same instance, with and without coordination, or with two engines or
directories. No daemon may run. The command seals the old place, and weir no longer starts
on it. If the command stops half way, run it again: weir starts on neither place before the
move is complete. The new place must have no records, or only some that were moved away from
there.

--abort ends a move that stopped half way, instead of completing it. weir uses the old place
again, and deletes what has reached the new one. If weir cannot reach the new place, that
place stays sealed. A complete move cannot be aborted: move the records back.
`

func stateCommand(s surroundings) *cobra.Command {
	var from, to string
	var abort bool
	c := &cobra.Command{
		Use:       "state move --config FILE --to FILE [--abort]",
		Short:     "move weir's records to another place",
		Long:      stateHelp + "\n" + exitHelp("state"),
		Example:   "  weir state move --config one.yaml --to several.yaml\n  weir state move --config one.yaml --to several.yaml --abort\n  weir state move --config several.yaml --to one.yaml",
		ValidArgs: []string{"move"},
		Args:      oneValid,
	}
	c.Flags().StringVar(&from, "config", "", "the configuration that weir used so far")
	c.Flags().StringVar(&to, "to", "", "the configuration that weir will use")
	c.Flags().BoolVar(&abort, "abort", false, "end a move that stopped half way, and keep the old place")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if from == "" || to == "" {
			return usage("name both: weir state move --config FILE --to FILE", "a configuration is missing")
		}
		old, err := s.loadConfig(from)
		if err != nil {
			return err
		}
		next, err := s.loadConfig(to)
		if err != nil {
			return err
		}
		switch {
		case old.Instance != next.Instance:
			return usage("give both the same instance: it is the owner in the tags of weir's resources", "%s is for instance %s, but %s is for %s", from, old.Instance, to, next.Instance)
		case records.Name(old) == records.Name(next):
			return usage("name a configuration with another place", "both keep their records in %s", records.Name(old))
		}
		if abort {
			whole, err := records.Abort(c.Context(), old, next)
			if err != nil {
				return hinted(fmt.Errorf("abort the move: %w", err), "nothing is lost; run weir state move again to continue a move that stopped half way")
			}
			fmt.Fprintf(s.stdout, "weir keeps its records in %s: start it with %s\n", records.Name(old), from)
			if !whole {
				fmt.Fprintf(s.stderr, "%s cannot be reached and stays sealed: weir does not start there until the records are moved again\n", records.Name(next))
			}
			return nil
		}
		if err := records.Move(c.Context(), old, next); err != nil {
			return hinted(fmt.Errorf("move records: %w", err), "nothing is lost; correct the problem and run the command again")
		}
		fmt.Fprintf(s.stdout, "the records of %s are now in %s: start weir with %s\n", records.Name(old), records.Name(next), to)
		return nil
	}
	return c
}
