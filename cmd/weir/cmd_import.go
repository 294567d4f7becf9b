package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/importer"
	"github.com/weir-gitops/weir/reconciler/importer/factor"
	"github.com/weir-gitops/weir/reconciler/importer/terraform"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/status/wording"
)

const importHelp = `Write the manifests of Auto Scaling groups and EKS nodegroups that already exist.

Import writes nothing to AWS. DIR must not exist. It gets one overlay for each cluster,
which is one target, and bases for pools that are alike. --flat writes one file for each
pool and one kustomization instead. weir adopt DIR then adopts the resources by their tags.

Before weir writes DIR, it plans it as if it were adopted. It imports a pool only if apply
would then replace, roll out and recreate nothing. The report lists what apply would still
change.

Launch templates, by --templates:
  auto  write the template's contents only if it has the name that weir would give it, such
        as a template of Cluster API Provider AWS; else as with name (default)
  name  refer to the template by its name (node.k8s.aws/launch-template-name); weir reads
        it and never changes it, and no user data gets into files
  own   write the contents of every template; weir then creates a template of its own with
        the same contents, and machines stay
For a group on a launch configuration, import always writes the contents. If weir would
replace a machine, import refers to the template by its name, and the report says why.

Import writes user data as a NodeadmConfig or an EKSConfig if that gives the same bytes and
contains only settings. Else it writes a Secret that it encrypts for --age and --kms-key-arn
as SOPS does. Without either, only --plain-user-data writes it.

It does not write the desired size, as an autoscaler may set it.

For each group and nodegroup, the report says whether it is imported completely, which of
its fields manifests cannot express, or why it is refused: it belongs to CloudFormation,
Karpenter, EKS or another weir, or no tag names its cluster.

Without --group, --nodegroup and --from-terraform, import reads the whole region, or
everything of --cluster.

With --from-terraform, it imports the groups and nodegroups of a Terraform state, and
those that launch from its launch templates. The file is the output of terraform state pull
or of terraform show -json.
`

// importFlags selects the resources to import, their source and the output directory.
type importFlags struct {
	region, account, role, endpoint, dir, report string
	choice                                       importer.Choice
	tags                                         []string
	terraform                                    string
	templates                                    string
	recipients                                   sops.Recipients
	plain, flat                                  bool
}

func importCommand(s surroundings) *cobra.Command {
	var flags importFlags
	var update importUpdate
	c := &cobra.Command{
		Use:   "import --region REGION {--out DIR | --update DIR} [flags]",
		Short: "write the manifests of existing groups and nodegroups, or update manifests from AWS",
		Long:  importHelp + importUpdateHelp + exitHelp("import"),
		Example: `  weir import --region eu-west-1 -o fleet
  weir import --region eu-west-1 --cluster prod -o fleet
  weir import --region eu-west-1 --group web --group batch --cluster prod -o fleet
  weir import --region eu-west-1 --from-terraform state.json -o fleet
  weir import --region eu-west-1 --update fleet --pool web --field maxSize --dry-run`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := update.checkFlags(c); err != nil {
				return err
			}
			if update.dir != "" {
				return update.run(c, s, &flags)
			}
			if err := flags.check(); err != nil {
				return err
			}
			return flags.run(c, s)
		},
	}
	f := c.Flags()
	f.StringVar(&flags.region, "region", "", "region to read")
	f.StringVar(&flags.account, "account", "", "account that the credentials must belong to (default: any)")
	f.StringVar(&flags.role, "role-arn", "", "role to assume for reading groups and nodegroups")
	f.StringVar(&flags.endpoint, "endpoint-url", "", "address to use instead of AWS, such as that of weir emulator")
	f.StringVarP(&flags.dir, "out", "o", "", "directory to create")
	f.StringVar(&flags.choice.Cluster, "cluster", "", "only resources of this cluster; it is also the cluster of groups of --group without a cluster tag")
	f.StringArrayVar(&flags.choice.Groups, "group", nil, "only the Auto Scaling group `NAME`; may be repeated")
	f.StringArrayVar(&flags.choice.Nodegroups, "nodegroup", nil, "only this nodegroup, `NAME` or CLUSTER/NAME; may be repeated")
	f.StringArrayVar(&flags.tags, "tag", nil, "only resources with this tag, `KEY=VALUE`; may be repeated, and all must match")
	f.StringVar(&flags.terraform, "from-terraform", "", "file with a Terraform state: import only its resources")
	flags.templates = string(importer.Auto)
	ways := []string{string(importer.Auto), string(importer.Name), string(importer.Own)}
	f.Var(choice{&flags.templates, ways}, "templates", "how to import launch templates")
	complete(c, "templates", func(string) []string { return ways })
	f.StringArrayVar(&flags.recipients.Age, "age", nil, "age `RECIPIENT`, age1…, that can decrypt user data; may be repeated")
	f.StringArrayVar(&flags.recipients.KMSKeyARNs, "kms-key-arn", nil, "`ARN` of a KMS key that encrypts user data; may be repeated")
	f.BoolVar(&flags.plain, "plain-user-data", false, "write user data unencrypted, including its secrets")
	f.BoolVar(&flags.flat, "flat", false, "write a file for each pool and one kustomization, without bases and overlays")
	flags.report = outputText
	f.Var(choice{&flags.report, []string{outputText, outputJSON, outputYAML}}, "report", "form of the report")
	complete(c, "report", func(string) []string { return []string{outputText, outputJSON, outputYAML} })
	_ = c.MarkFlagDirname("out") // the flag exists
	update.add(c)
	return c
}

// check validates the flags of an import without --update: required flags, their values, and flags that
// exclude each other. It also parses --tag into choice.Tags. The output directory must not exist yet.
func (f *importFlags) check() error {
	switch {
	case f.region == "":
		return usage("weir import --region eu-west-1 -o DIR", "--region is required")
	case !config.ValidRegion(f.region):
		return usage("regions are named like eu-west-1", "%q does not look like a region", f.region)
	case f.dir == "":
		return usage("add -o DIR", "no directory to write to is given")
	case f.terraform != "" && len(f.choice.Groups)+len(f.choice.Nodegroups) > 0:
		return usage("use either --group and --nodegroup, or --from-terraform", "--from-terraform already selects groups and nodegroups")
	case f.account != "" && !config.ValidAccount(f.account):
		return usage("an account has twelve digits", "%q is not an AWS account", f.account)
	}
	if f.plain && !f.recipients.None() {
		return usage("use only one of them", "--plain-user-data cannot be combined with --age and --kms-key-arn")
	}
	for _, r := range f.recipients.Age {
		if err := sops.ParseRecipient(r); err != nil {
			return hinted(fmt.Errorf("--age: %w", err), "age-keygen makes a key, and prints its recipient")
		}
	}
	f.choice.Tags = map[string]string{}
	for _, t := range f.tags {
		k, v, ok := strings.Cut(t, "=")
		if !ok || k == "" {
			return usage("write --tag team=web", "%q is not KEY=VALUE", t)
		}
		f.choice.Tags[k] = v
	}
	if f.endpoint != "" {
		if err := config.CheckEndpoint(f.endpoint); err != nil {
			return hinted(fmt.Errorf("--endpoint-url: %w", err), "write it like http://127.0.0.1:8345")
		}
	}
	if _, err := os.Lstat(f.dir); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fs.ErrExist
		}
		return hinted(fmt.Errorf("make %s: %w", f.dir, err), "name a new directory, and merge by hand: import overwrites nothing")
	}
	return writable(f.dir)
}

// run reads resources, writes manifests to a temporary directory, plans them, and moves them to their final
// place at the end.
func (f *importFlags) run(c *cobra.Command, s surroundings) error {
	ctx := c.Context()
	var held terraform.State
	if f.terraform != "" {
		var err error
		if held, err = readTerraform(f.terraform); err != nil {
			return err
		}
	}
	state, err := f.read(ctx, s, held)
	if err != nil {
		return err
	}
	pools := importer.Make(state, importer.Options{Cluster: f.choice.Cluster, Templates: importer.Templates(f.templates), Secrets: !f.recipients.None(), Plain: f.plain})
	if len(pools) == 0 {
		return hinted(errors.New("no group or nodegroup to import found"), "check --region, --cluster, --tag and the account of the credentials")
	}
	temp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(f.dir)), ".weir-import-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }() // anything left there is not needed
	if err := f.prove(c, s, state, pools, temp); err != nil {
		return err
	}
	left := slices.ContainsFunc(pools, func(p importer.Pool) bool { return p.State != importer.Refused })
	var made *factored
	var why string
	if left {
		if !f.flat {
			if made, why, err = f.factor(ctx, state, pools, filepath.Join(temp, "fleet")); err != nil {
				return err
			}
		}
		if err := f.seal(ctx, s, pools, filepath.Join(temp, "fleet")); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(temp, "fleet"), 0o755); err != nil {
			return fmt.Errorf("make %s: %w", f.dir, err)
		}
		if err := os.Rename(filepath.Join(temp, "fleet"), f.dir); err != nil {
			return fmt.Errorf("make %s: %w", f.dir, err)
		}
	}
	if err := f.printReport(s, pools, made, why); err != nil {
		return err
	}
	asked := func(p importer.Pool) bool {
		return p.State == importer.Refused && (slices.Contains(f.choice.Groups, p.Name) || slices.Contains(f.choice.Nodegroups, p.Name) || slices.Contains(f.choice.Nodegroups, p.Cluster+"/"+p.Name))
	}
	if !left || slices.ContainsFunc(pools, asked) {
		return withCode(exitRefused)
	}
	return nil
}

// read reads the selected resources. held is the state that --from-terraform names.
func (f *importFlags) read(ctx context.Context, s surroundings, held terraform.State) (observed.State, error) {
	cloud, err := s.openAccount(ctx, reconciler.ScopeKey{Account: f.account, Region: f.region, RoleARN: f.role, Endpoint: f.endpoint})
	if err != nil {
		return observed.State{}, err
	}
	defer cloud.Close()
	progress := newProgress(s)
	defer progress.end()
	hint := "names are those of AWS, and a nodegroup's may be CLUSTER/NAME"
	if f.terraform != "" {
		if held, err = resourcesIn(held, f.terraform, cloud.Account(), f.region, progress.line); err != nil {
			return observed.State{}, err
		}
		f.choice.Groups, f.choice.Nodegroups = held.Names(terraform.Group), held.Names(terraform.Nodegroup)
		f.choice.Templates, f.choice.Configurations = held.Names(terraform.LaunchTemplate), held.Names(terraform.LaunchConfiguration)
		hint = "the state is older than AWS: terraform apply -refresh-only updates it"
	}
	progress.line("Reading groups and nodegroups in " + f.region)
	var clusters []string
	if f.choice.Cluster != "" {
		clusters = []string{f.choice.Cluster}
	}
	var missing []string
	state, err := cloud.Survey(ctx, clusters, func(state *observed.State) { missing = f.choice.Of(state) }, func(done, all int) { progress.count(done, all, "read") })
	if err == nil && len(missing) == 0 {
		progress.line("Reading launch templates")
		state, err = readSources(ctx, cloud, state, importer.Templates(f.templates))
	}
	if err == nil && len(missing) > 0 {
		err = hinted(fmt.Errorf("AWS does not have %s in %s", strings.Join(missing, ", "), f.region), hint)
	}
	return state, err
}

// readSources reads the launch configuration of pools whose manifests must contain it.
func readSources(ctx context.Context, cloud *awscloud.Cloud, state observed.State, how importer.Templates) (observed.State, error) {
	needs := importer.ContentNeeds(state, how)
	state, err := cloud.Fill(ctx, state, observed.Needs{TemplateNames: needs.TemplateNames, LaunchConfigurations: needs.LaunchConfigurations})
	if err != nil {
		return state, err
	}
	there := func(ref observed.TemplateRef) bool { _, ok := state.Templates[ref.Name]; return ok }
	return cloud.Fill(ctx, state, observed.Needs{Versions: slices.DeleteFunc(needs.Versions, func(ref observed.TemplateRef) bool { return !there(ref) })})
}

// importReport is the report as JSON.
type importReport struct {
	Schema    string          `json:"schema"`
	Region    string          `json:"region"`
	Directory string          `json:"directory"`
	Pools     []importer.Pool `json:"pools"`
	// Overlays lists directories below the output directory, one per target; none with --flat.
	Overlays []string      `json:"overlays,omitempty"`
	Bases    []factor.Base `json:"bases,omitempty"`
	// Lines is the number of lines of YAML. FlatLines is the number of lines with a separate file for each
	// pool.
	Lines     int `json:"lines,omitempty"`
	FlatLines int `json:"flatLines,omitempty"`
	// Notice is the reason why the requested bases are missing.
	Notice string `json:"notice,omitempty"`
}

// printReport prints the report of an import. why explains why the manifests have no bases, "" if they have them.
func (f *importFlags) printReport(s surroundings, pools []importer.Pool, made *factored, why string) error {
	if f.report != outputText {
		out := importReport{Schema: "weir.dev/import/v1", Region: f.region, Directory: f.dir, Pools: pools, Notice: why}
		if made != nil {
			out.Overlays, out.Bases, out.Lines, out.FlatLines = made.Overlays, made.Bases, made.Lines, made.Flat
		}
		return s.value(f.report, out)
	}
	counts := map[importer.State]int{}
	for i := range pools {
		p := &pools[i]
		counts[p.State]++
		name := "auto-scaling-group " + p.Name
		if p.Kind == intent.NodegroupPool {
			name = "nodegroup " + p.Cluster + "/" + p.Name
		}
		switch p.State {
		case importer.Refused:
			name += ": refused: " + p.Reason
		case importer.Partly:
			name += ": imported in part: " + p.File
		default:
			name += ": imported whole: " + p.File
		}
		fmt.Fprintln(s.stdout, wording.Clean(name))
		if p.SecretFile != "" {
			how := ", encrypted"
			if f.plain {
				how = " as plain text"
			}
			fmt.Fprintln(s.stdout, "  its user data is in "+p.SecretFile+how)
		}
		for _, n := range p.Notes {
			fmt.Fprintln(s.stdout, "  "+wording.Clean(n.Field+": "+n.Text))
		}
		for _, text := range p.Advice {
			fmt.Fprintln(s.stdout, "  "+wording.Clean(text))
		}
		for _, text := range p.Conversions {
			fmt.Fprintln(s.stdout, "  "+wording.Clean("once adopted, apply changes "+text))
		}
	}
	fmt.Fprintf(s.stdout, "\n%s imported whole, %d in part, %d refused.\n", wording.Count(counts[importer.Whole], "pool"), counts[importer.Partly], counts[importer.Refused])
	if counts[importer.Whole]+counts[importer.Partly] > 0 {
		f.tellFactored(s, made, why)
		next := ""
		if f.terraform != "" {
			next = " --from-terraform " + wording.Clean(f.terraform)
		}
		fmt.Fprintf(s.stdout, "Next: weir adopt %s --region %s%s\n", wording.Clean(f.dir), f.region, next)
	}
	return nil
}
