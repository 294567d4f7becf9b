package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/reconciler/accept"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/status/wording"
)

const importUpdateHelp = `
With --update, DIR must exist. It is a PATH as for weir plan, in a Git work tree. weir plans
it, and writes the values that differ in AWS into its files, such as sizes, tags or instance
types that somebody changed in the console and that you want to keep. weir writes each value
to the line that sets it now, or, if other targets use that file, to a patch that only this
target uses. It renders and plans the result first: only the written fields may change.
--pool and --field select values. --dry-run shows the edit and writes nothing. The report
lists values that manifests cannot express or that you must write yourself; then the exit
code is 4.

With --config, DIR is a work tree of a source, and weir plans its targets as weir plan --path
does. Use it for the targets of a daemon. Afterwards commit the edit, or undo it with git
checkout.
`

// importUpdate contains the flags that only import --update has.
type importUpdate struct {
	dir              string
	pools, fields    []string
	dry              bool
	config           string
	target, instance string
	vars             varFlags
}

func (u *importUpdate) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&u.dir, "update", "", "write the values that differ in AWS into the manifests of the PATH `DIR`, instead of a new directory")
	f.StringArrayVar(&u.pools, "pool", nil, "with --update: only this pool, `NAME` or NAMESPACE/NAME; may be repeated")
	f.StringArrayVar(&u.fields, "field", nil, "with --update: only this `FIELD` and those below it, as weir plan names it; may be repeated")
	f.BoolVar(&u.dry, "dry-run", false, "with --update: show the edit, and write nothing")
	f.StringVar(&u.config, "config", "", "with --update: configuration file; DIR is then a work tree of a source, and weir plans its targets as weir plan --path does")
	f.StringVar(&u.target, "target", "", "with --update: name of the target for DIR (default: the directory's name); with --config the one target to update (default: all)")
	f.StringVar(&u.instance, "instance", fleet.PathInstance, "with --update: owner of the resources of DIR")
	u.vars.add(c)
	_ = c.MarkFlagDirname("update") // the flag exists
}

// importOnly lists the flags that exclude --update, and updateOnly the flags that require it.
var (
	importOnly = []string{"out", "account", "role-arn", "cluster", "group", "nodegroup", "tag", "from-terraform", "templates", "age", "plain-user-data", "flat"}
	updateOnly = []string{"pool", "field", "dry-run", "config", "target", "instance", "var", "vars-file", "secret-vars-file", "age-key-file"}
)

// checkFlags rejects flags that exclude each other.
func (u *importUpdate) checkFlags(c *cobra.Command) error {
	if flag := given(c, importOnly...); u.dir != "" && flag != "" {
		return usage("omit it: the manifests define the pools", "%s cannot be combined with --update", flag)
	}
	if flag := given(c, updateOnly...); u.dir == "" && flag != "" {
		return usage("add --update DIR", "%s needs --update", flag)
	}
	return nil
}

// run edits the files of a PATH.
func (u *importUpdate) run(c *cobra.Command, s surroundings, f *importFlags) error {
	if f.endpoint != "" {
		if err := config.CheckEndpoint(f.endpoint); err != nil {
			return hinted(fmt.Errorf("--endpoint-url: %w", err), "write it like http://127.0.0.1:8345")
		}
	}
	flags := passFlags{endpoint: f.endpoint}
	env, choice := flags.env(s, s.quiet()), accept.Choice{Pools: u.pools, Fields: u.fields}
	var done *workspace.Accepted
	var err error
	if u.config != "" {
		if flag := given(c, "region", "instance", "var", "vars-file", "secret-vars-file", "age-key-file", "kms-key-arn"); flag != "" {
			return usage("omit the flag: the configuration defines it", "%s needs a PATH, and cannot be combined with --config", flag)
		}
		cfg, loaded := s.loadConfig(u.config)
		if loaded != nil {
			return loaded
		}
		var targets []string
		if u.target != "" {
			targets = []string{u.target}
		}
		done, err = workspace.AcceptConfig(c.Context(), env, cfg, u.dir, targets, choice)
	} else {
		done, err = workspace.AcceptPath(c.Context(), env, workspace.Path{
			Path: u.dir, Region: f.region, Target: u.target, Instance: u.instance, KMSKeys: f.recipients.KMSKeyARNs,
			Inputs: func() (workspace.Inputs, error) { return u.vars.read(s) },
		}, choice)
	}
	if err != nil {
		return err
	}
	if !u.dry {
		if err := done.Write(); err != nil {
			return err
		}
	}
	if err := u.printReport(s, f.report, done); err != nil {
		return err
	}
	if slices.ContainsFunc(done.Fields, func(f accept.Field) bool { return f.Left != "" }) {
		return withCode(exitRefused)
	}
	return nil
}

// updateReport is the report of import --update as JSON.
type updateReport struct {
	Schema string         `json:"schema"`
	Fields []accept.Field `json:"fields"`
	Files  []string       `json:"files"`
	// More lists steps of weir plan that were not there before.
	More []string `json:"more"`
	// Written says that the files were written.
	Written bool `json:"written"`
}

// printReport prints the fields that import --update takes from AWS and the changes of the files. form is the
// output format.
func (u *importUpdate) printReport(s surroundings, form string, done *workspace.Accepted) error {
	if form != outputText {
		out := updateReport{Schema: "weir.dev/import-update/v1", Fields: append([]accept.Field{}, done.Fields...), Files: []string{}, More: append([]string{}, done.More...), Written: !u.dry && len(done.Files) > 0}
		for _, f := range done.Files {
			out.Files = append(out.Files, f.Path)
		}
		return s.value(form, out)
	}
	if len(done.Fields) == 0 {
		fmt.Fprintln(s.stdout, "AWS has no other value for the selected fields.")
		return nil
	}
	said := 0
	for _, f := range done.Fields {
		if f.Left == "" {
			said++
		}
		fmt.Fprintln(s.stdout, wording.Clean(fieldLine(f)))
	}
	for _, f := range done.Files {
		fmt.Fprintf(s.stdout, "\n%s\n", wording.Clean(f.Path))
		for _, line := range lineDiff(string(f.Was), string(f.Now)) {
			fmt.Fprintln(s.stdout, wording.Clean(line))
		}
	}
	if len(done.More) > 0 {
		fmt.Fprintln(s.stdout, "\nApplying this also changes other things:")
		for _, text := range done.More {
			fmt.Fprintln(s.stdout, "  "+wording.Clean(text))
		}
	}
	switch {
	case len(done.Files) == 0:
	case u.dry:
		fmt.Fprintf(s.stdout, "\nWould write %s, into %s.\n", wording.Count(said, "field"), wording.Count(len(done.Files), "file"))
	default:
		fmt.Fprintf(s.stdout, "\n%s written, into %s. Commit the change, or undo it with git checkout.\n", wording.Count(said, "field"), wording.Count(len(done.Files), "file"))
	}
	return nil
}

// equalEnds returns the numbers of equal lines at the start and at the end.
func equalEnds(a, b []string) (begin, end int) {
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		begin++
	}
	for end < min(len(a), len(b))-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return begin, end
}

// commonLines returns a table. Its entry i, j is the length of the longest common subsequence of a[i:] and
// b[j:].
func commonLines(a, b []string) [][]int {
	common := make([][]int, len(a)+1)
	common[len(a)] = make([]int, len(b)+1)
	for i := len(a) - 1; i >= 0; i-- {
		common[i] = make([]int, len(b)+1)
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}

// lineDiff returns the differences of lines, with one line of context.
func lineDiff(was, now string) (out []string) {
	a, b := strings.Split(strings.TrimSuffix(was, "\n"), "\n"), strings.Split(strings.TrimSuffix(now, "\n"), "\n")
	begin, end := equalEnds(a, b)
	lead := max(0, begin-1) // show one line of context
	a, b = a[lead:len(a)-end], b[lead:len(b)-end]
	common := commonLines(a, b)
	shown := 0 // lines of a that are already in out
	for i, j := 0, 0; i < len(a) || j < len(b); {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			i, j = i+1, j+1
			continue
		}
		if shown < i {
			if shown < i-1 || len(out) == 0 {
				out = append(out, fmt.Sprintf("  @ line %d", lead+i))
			}
			out = append(out, "    "+a[i-1])
		}
		for i < len(a) && (j == len(b) || a[i] != b[j] && common[i+1][j] >= common[i][j+1]) {
			out = append(out, "  - "+a[i])
			i++
		}
		for j < len(b) && (i == len(a) || a[i] != b[j] && common[i][j+1] > common[i+1][j]) {
			out = append(out, "  + "+b[j])
			j++
		}
		shown = i
	}
	return out
}
