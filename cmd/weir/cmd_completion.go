package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
)

func completionCommand(s surroundings) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "print a script that completes weir's command lines",
		Long: `Print a script that completes weir's commands, flags and target names in a shell.

  bash        source <(weir completion bash)
  zsh         weir completion zsh > "${fpath[1]}/_weir"
  fish        weir completion fish | source
  powershell  weir completion powershell | Out-String | Invoke-Expression`,
		Example:   "  source <(weir completion bash)",
		ValidArgs: shells,
		Args:      oneValid,
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(s.stdout, true)
			case "zsh":
				return root.GenZshCompletion(s.stdout)
			case "fish":
				return root.GenFishCompletion(s.stdout, true)
			default:
				return root.GenPowerShellCompletionWithDesc(s.stdout)
			}
		},
	}
}

// completionTimeout is the timeout of a completion.
const completionTimeout = time.Second

// completeTargets completes the names of the configured targets. If none can be read, the shell completes
// paths, which these commands also accept.
func completeTargets(s surroundings, file *string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if *file == "" {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return offered(loadNames(c.Context(), s, *file, serverFlags{}).targets())
	}
}

// completeFromDaemon completes targets and, from argument poolsFrom on, their pools. It uses a running
// daemon, or otherwise the targets of the configuration. If neither is available, it returns nothing.
func completeFromDaemon(s surroundings, file *string, server *serverFlags, poolsFrom int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		all := loadNames(c.Context(), s, *file, *server)
		switch {
		case poolsFrom == 0:
			return offered(append(all.targets(), all.pools("")...))
		case poolsFrom == 1 && len(args) == 1:
			return offered(all.pools(args[0]))
		case poolsFrom == 1 && len(args) > 1:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offered(all.targets())
	}
}

// poolsNever disables the completion of pools.
const poolsNever = -1

func offered(names []cobra.Completion) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(names) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// names maps targets to their pools.
type names map[string][]string

// loadNames asks the daemon, or reads the configuration if no daemon answers in time.
func loadNames(ctx context.Context, s surroundings, file string, server serverFlags) names {
	out := names{}
	var c *config.Config
	if file != "" {
		c, _, _ = config.Load(file, s.env()) // with an invalid configuration, there are no completions
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	if found, err := s.askServer(ctx, server, c, nil); err == nil {
		for t := range found.marks.Seen {
			out[t] = nil
		}
		for _, p := range found.Pools {
			out[p.Target] = append(out[p.Target], p.Namespace+"/"+p.Name)
		}
		return out
	}
	if c != nil {
		for _, t := range c.Targets {
			out[t.Name] = nil
		}
	}
	return out
}

func (n names) targets() []cobra.Completion { return slices.Sorted(maps.Keys(n)) }

// pools returns the pools of a target, or of all targets.
func (n names) pools(target string) (out []cobra.Completion) {
	for name, pools := range n {
		if target == "" || name == target {
			out = append(out, pools...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
