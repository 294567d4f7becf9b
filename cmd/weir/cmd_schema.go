package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/render/schema"
)

const schemaHelp = `Print the JSON Schema (draft-07) of the manifests that weir reads, for editors and
other validators: of all kinds in one schema, of the KINDs, or of weir's configuration with
the word config. The schema accepts objects of other kinds, and accepts a text with ${VAR}
in place of any value.

With -o it writes one file for each kind and version below a directory, named
GROUP/KIND_VERSION.json. all.json is for all kinds, and weir.dev/config_v1alpha1.json for the
configuration.

--partial is for patches, and for bases that overlays complete: no field is required.
`

// configWord is the word for weir's own configuration in the list of kinds. configSchema is the file of its
// schema.
const (
	configWord   = "config"
	configSchema = "weir.dev/config_v1alpha1.json"
	allSchemas   = "all.json"
)

func schemaCommand(s surroundings) *cobra.Command {
	var all, partial bool
	var dir string
	c := &cobra.Command{
		Use:   "schema [KIND…|config] [flags]",
		Short: "print JSON Schemas for editors and validators",
		Long:  schemaHelp + exitHelp("schema"),
		Example: `  weir schema > weir.schema.json
  weir schema AWSMachinePool
  weir schema config > weir-config.schema.json
  weir schema --all -o schemas`,
		ValidArgsFunction: func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return slices.DeleteFunc(append(kindNames(), configWord), func(n string) bool { return !strings.HasPrefix(n, prefix) }), cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().BoolVar(&all, "all", false, "print all kinds, the same as no KIND")
	c.Flags().BoolVar(&partial, "partial", false, "for patches and bases: require nothing")
	c.Flags().StringVarP(&dir, "output-dir", "o", "", "write files into this `directory`")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if all && len(args) > 0 {
			return usage("give KINDs or --all", "--all with %s", strings.Join(args, " "))
		}
		files, err := schemaFiles(args, schema.Options{Partial: partial})
		if err != nil {
			return err
		}
		if dir != "" {
			return writeSchemas(dir, files)
		}
		// Standard output gets one document, which covers all of them.
		text, err := schema.Marshal(files[0].schema)
		if err == nil {
			_, err = s.stdout.Write(text)
		}
		return err
	}
	return c
}

// schemaFile is a schema with its path below a directory.
type schemaFile struct {
	path   string
	schema schema.Node
}

// schemaFiles returns the schemas for the arguments. Without arguments, it returns the schemas of all kinds
// and of the configuration. The first one covers all of them.
func schemaFiles(args []string, o schema.Options) ([]schemaFile, error) {
	ours := schemaFile{configSchema, config.Schema()}
	if len(args) == 1 && args[0] == configWord {
		return []schemaFile{ours}, nil
	}
	var kinds []schema.Kind
	for _, name := range args {
		found := slices.DeleteFunc(schema.Kinds(), func(k schema.Kind) bool { return !strings.EqualFold(k.Name, name) })
		switch {
		case name == configWord:
			return nil, usage("print it by itself: weir schema config", "config is not a kind of a manifest")
		case len(found) == 0:
			return nil, usage("the kinds are "+strings.Join(kindNames(), ", "), "unknown kind %q", name)
		}
		kinds = append(kinds, found...)
	}
	if len(args) == 0 {
		kinds = schema.Kinds()
	}
	union, err := schema.Union(kinds, o)
	if err != nil {
		return nil, err
	}
	files := []schemaFile{{allSchemas, union}}
	for _, k := range kinds {
		one, err := schema.Of(k, o)
		if err != nil {
			return nil, err
		}
		files = append(files, schemaFile{k.Path(), one})
	}
	if len(args) == 0 {
		files = append(files, ours)
	}
	return files, nil
}

// kindNames returns the names of the kinds that have schemas.
func kindNames() []string {
	var out []string
	for _, k := range schema.Kinds() {
		out = append(out, k.Name)
	}
	return slices.Compact(out)
}

// writeSchemas writes schema files below dir, and makes their directories.
func writeSchemas(dir string, files []schemaFile) error {
	for _, f := range files {
		text, err := schema.Marshal(f.schema)
		if err != nil {
			return err
		}
		name := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("write schemas: %w", err)
		}
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return fmt.Errorf("write schemas: %w", err)
		}
	}
	return nil
}
