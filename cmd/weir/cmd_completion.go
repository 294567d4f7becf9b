package main

import (
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
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
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

// completeTargets offers the names of the configured targets. Where none can be
// read, the shell completes paths, which these commands take as well.
func completeTargets(s surroundings, file *string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if *file == "" {
			return nil, cobra.ShellCompDirectiveDefault
		}
		c, _, err := config.Load(*file, s.env())
		if err != nil || c == nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var names []cobra.Completion
		for _, t := range c.Targets {
			names = append(names, t.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
