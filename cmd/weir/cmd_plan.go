package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/terminal"
)

const planHelp = `Show what apply would do, and change nothing.

With --config, the arguments are names of its targets, and weir plans the commit that each
target's source follows.

Without --config, weir plans PATH as it is on disk. PATH is a kustomization directory, a
directory of YAML files, one file, or a directory with a directory overlays. Each overlay is
then a target. The instance is "weir", and the target has the directory's name. weir refuses
resources of another target. It keeps what PATH no longer wants, unless --prune is given.

Instead of the commit that a source follows, weir plans:
  --path          a Git work tree as it is on disk, with uncommitted and untracked files but
                  without files that Git ignores
  --ref           a branch, tag or commit of the source's repository
  --pull-request  the result of merging a pull request
Names, variables, roles and the owner come from the configuration. weir writes nothing: not
to AWS, and not to the state directory, which need not exist. It plans targets that the
change does not affect only if you name them. Such a plan has no digest, so nobody can
approve it.

With --server a running daemon makes the plan for any reader, with its own configuration
and credentials. The command sends the files that Git tracks, as they are on disk: those
around --path, or around the current directory. New files count once you have added them to
Git. The daemon plans them like a pull request from a fork: with the role for plans, and
without decrypting anything.

The plan shows the file and line that set each changed field. On a terminal weir cuts long
values to its width; other outputs have them in full.
`

func planCommand(s surroundings) *cobra.Command {
	var flags passFlags
	var output string
	var detailed, full bool
	var proposal proposalFlags
	var server serverFlags
	c := &cobra.Command{
		Use:   "plan (--config FILE | --server URL) [TARGET…] [--path DIR] [--ref REF] [--pull-request NUMBER] [flags], or weir plan PATH --region REGION [flags]",
		Short: "show what apply would do",
		Long:  planHelp + exitHelp("plan"),
		Example: `  weir plan overlays/prod --region eu-west-1 --var CLUSTER_NAME=prod
  weir plan --config weir.yaml prod --detailed-exitcode
  weir plan --config weir.yaml --path .
  weir plan --config weir.yaml --ref my-branch prod
  weir plan --config weir.yaml --pull-request 12
  weir plan --server https://weir.example.com --path . --detailed-exitcode
  weir plan overlays/prod --region eu-west-1 --endpoint-url http://127.0.0.1:8345 -o json`,
		Args: cobra.ArbitraryArgs,
	}
	flags.add(c, s)
	proposal.add(c)
	server.add(c)
	targets := c.ValidArgsFunction
	c.ValidArgsFunction = func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if server.address != "" {
			return completeFromDaemon(s, &flags.config, &server, poolsNever)(c, args, prefix)
		}
		return targets(c, args, prefix)
	}
	outputFlag(c, &output, outputText, outputJSON, outputYAML, outputMarkdown)
	c.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit with 2 if the plan has changes")
	c.Flags().BoolVar(&full, "full", false, "do not shorten values to the terminal's width")
	c.RunE = func(c *cobra.Command, args []string) error {
		reports, err := planned(c, s, &flags, proposal, server, args)
		if err != nil {
			return err
		}
		switch output {
		case outputJSON, outputYAML:
			err = s.value(output, terminal.Plans(reports))
		case outputMarkdown:
			err = terminal.PlansMarkdown(s.stdout, reports)
		default:
			p := s.printer(s.stdout)
			p.Full = full
			for _, r := range reports {
				p.Plan(r)
			}
			p.Errors(reports)
		}
		if err != nil {
			return err
		}
		return withCode(planCode(reports, detailed))
	}
	return c
}

// proposalFlags selects a proposal to plan instead of the followed commit.
type proposalFlags struct{ path, ref, pull string }

func (f *proposalFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.path, "path", "", "plan the Git work tree around `DIR` as it is on disk, instead of the commit that its source follows")
	c.Flags().StringVar(&f.ref, "ref", "", "plan the branch, tag or commit `REF`: of the source's repository, or with --path of the one around DIR")
	c.Flags().StringVar(&f.pull, "pull-request", "", "plan the pull request `NUMBER`, or SOURCE#NUMBER, merged into the commit that its source follows")
	_ = c.MarkFlagDirname("path") // the flag exists
}

func (f *proposalFlags) given() bool { return f.path != "" || f.ref != "" || f.pull != "" }

// proposals lists the names of the flags.
var proposals = []string{"path", "ref", "pull-request"}

// draft returns the draft that the flags propose for targets.
func (f *proposalFlags) draft(c *cobra.Command, targets []string) (workspace.Draft, error) {
	out := workspace.Draft{Path: f.path, Ref: f.ref, Targets: targets}
	if f.pull == "" {
		return out, nil
	}
	if flag := given(c, "path", "ref"); flag != "" {
		return out, usage("use only one of them", "--pull-request cannot be combined with %s", flag)
	}
	var err error
	out.Pull, err = workspace.ParsePull(f.pull)
	return out, err
}

// planned makes the plans for a command line, in this process or in a running daemon.
func planned(c *cobra.Command, s surroundings, flags *passFlags, proposal proposalFlags, server serverFlags, args []string) ([]*plan.Report, error) {
	asks := server.address != "" || flags.config == "" && proposal.given() && s.getenv("WEIR_SERVER") != ""
	switch flag := given(c, "address", "token-file", "ca-file"); {
	case asks && flags.config != "":
		return nil, usage("use only one of them", "--server uses the daemon's configuration, so --config is not allowed")
	case asks:
		if flag := cmp.Or(flags.pathOnly(c), given(c, "endpoint-url")); flag != "" {
			return nil, usage("omit it: the daemon's configuration defines it", "%s cannot be combined with --server", flag)
		}
		if proposal.pull != "" {
			return nil, usage("the daemon plans pull requests by itself and shows the plan in its comment and on its page; or use --config FILE", "--pull-request cannot be combined with --server")
		}
	case flag != "":
		return nil, usage("add --server URL", "%s needs --server", flag)
	case proposal.given() && flags.config == "":
		return nil, usage("add --config FILE, or --server URL to ask a running daemon", "%s needs the targets of a configuration", given(c, proposals...))
	}
	if asks || proposal.given() {
		if err := flags.checkPathFlags(c); err != nil {
			return nil, err
		}
		draft, err := proposal.draft(c, args)
		if err != nil {
			return nil, err
		}
		env := flags.env(s, s.quiet())
		result, err := planDraft(c.Context(), s, env, flags.config, server, draft)
		if err != nil {
			return nil, err
		}
		for _, text := range result.Notes() {
			env.Note(text)
		}
		return result.Reports, nil
	}
	w, err := flags.open(c, s, args, s.quiet())
	if err != nil {
		return nil, err
	}
	defer w.Close()
	reports := w.Pass(c.Context(), reconciler.PlanOnly)
	return reports, c.Context().Err()
}

// planDraft plans a draft with a configuration, or asks a daemon to do so if no configuration is given.
func planDraft(ctx context.Context, s surroundings, env workspace.Env, file string, server serverFlags, draft workspace.Draft) (workspace.Drafted, error) {
	if file == "" {
		d, err := s.daemonOf(server, nil)
		if err != nil {
			return workspace.Drafted{}, err
		}
		return workspace.SendDraft(ctx, d, draft, env.Note)
	}
	cfg, err := s.loadConfig(file)
	if err != nil {
		return workspace.Drafted{}, err
	}
	return workspace.PlanDraft(ctx, env, cfg, draft)
}
