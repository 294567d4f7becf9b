package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build describes the sources of this binary.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// buildOf returns the linker's values if present, otherwise Go's own.
func buildOf() build {
	b := build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; b.Version == "" && v != "" && v != "(devel)" {
			b.Version = v
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && b.Commit == "":
				b.Commit = s.Value
			case s.Key == "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	if b.Version == "" {
		b.Version = "dev"
	}
	return b
}

func versionCommand(s surroundings) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:     "version [flags]",
		Short:   "print the version, commit and Go version of this binary",
		Long:    "Print the version, the commit and the Go version that this binary was built from.\n" + exitHelp("version"),
		Example: "  weir version -o json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			b := buildOf()
			if output != outputText {
				return s.value(output, b)
			}
			line := "weir " + b.Version
			if b.Commit != "" {
				line += " (" + b.Commit[:min(12, len(b.Commit))] + ")"
			}
			fmt.Fprintln(s.stdout, line, b.Go, b.Platform)
			return nil
		},
	}
	outputFlag(c, &output, outputText, outputJSON, outputYAML)
	return c
}
