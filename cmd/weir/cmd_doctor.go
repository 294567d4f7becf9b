package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/awscloud/doctor"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/status/wording"
)

const doctorHelp = `Check weir's assumptions about AWS in an account, and report the answers.

weir was built against an emulator. The page reference/assumptions.md lists assumptions
that are not verified in a real account. For each one, the report says whether AWS behaves
as assumed, behaves differently, or could not be checked, with AWS's own message. It names no
account, so you can attach it to an issue (-o markdown).

Without --apply it changes nothing. With --apply it creates, rolls and deletes a launch
template and an Auto Scaling group of one or two t3.micro, which takes about 20 minutes and
costs a few cents. With --cluster and --node-role it also creates two nodegroups without
machines. Their names start with weir-doctor-, and they have the tags weir.dev/doctor and
weir.dev/owner, so this policy is enough (--pass-role only with --node-role, and with its
ARN):

  weir policy --account ID --region REGION --instance weir-doctor --apply --pass-role ARN

Ctrl-C ends the checks and deletes these resources. --clean deletes resources of earlier
visits that are older than three hours, as a younger visit may still be running.
--visit NUMBER deletes those of one visit, whatever its age.
`

// doctorFlags selects the account to visit, and the permitted actions there.
type doctorFlags struct {
	region, account, role, endpoint, output string
	clean                                   bool
	visit                                   doctor.Options
}

func doctorCommand(s surroundings) *cobra.Command {
	var flags doctorFlags
	c := &cobra.Command{
		Use:   "doctor --region REGION [flags]",
		Short: "check weir's assumptions about AWS",
		Long:  doctorHelp + exitHelp("doctor"),
		Example: `  weir doctor --region eu-west-1
  weir doctor --region eu-west-1 --apply --cluster test --node-role arn:aws:iam::123456789012:role/nodes -o markdown
  weir doctor --region eu-west-1 --clean`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := flags.check(c); err != nil {
				return err
			}
			return flags.run(c.Context(), s)
		},
	}
	f := c.Flags()
	f.StringVar(&flags.region, "region", "", "region to check")
	f.StringVar(&flags.account, "account", "", "account that the credentials must belong to (default: any)")
	f.StringVar(&flags.role, "role-arn", "", "role to assume")
	f.StringVar(&flags.endpoint, "endpoint-url", "", "address to use instead of AWS, such as that of weir emulator")
	f.BoolVar(&flags.visit.Apply, "apply", false, "create, roll and delete a small group")
	f.BoolVar(&flags.clean, "clean", false, "only delete resources of earlier visits")
	f.StringVar(&flags.visit.Number, "visit", "", "with --clean: number of the visit whose resources to delete, whatever its age (default: all older than three hours)")
	f.StringVar(&flags.visit.Subnet, "subnet", "", "subnet of the created resources (default: a default subnet; for nodegroups the cluster's subnets)")
	f.StringVar(&flags.visit.InstanceType, "instance-type", "t3.micro", "instance type of the machine")
	f.StringVar(&flags.visit.OtherType, "other-type", "t3.small", "instance type that replaces it")
	f.StringVar(&flags.visit.Cluster, "cluster", "", "EKS cluster to make two nodegroups in, with --apply")
	f.StringVar(&flags.visit.NodeRole, "node-role", "", "ARN of the nodegroups' role")
	outputFlag(c, &flags.output, outputText, outputJSON, outputYAML, outputMarkdown)
	return c
}

// check rejects flags that exclude each other.
func (f *doctorFlags) check(c *cobra.Command) error {
	switch {
	case f.region == "":
		return usage("weir doctor --region eu-west-1", "--region is required")
	case !config.ValidRegion(f.region):
		return usage("regions are named like eu-west-1", "%q does not look like a region", f.region)
	case f.account != "" && !config.ValidAccount(f.account):
		return usage("an account has twelve digits", "%q is not an AWS account", f.account)
	}
	if err := f.checkVisit(c); err != nil {
		return err
	}
	if f.endpoint != "" {
		if err := config.CheckEndpoint(f.endpoint); err != nil {
			return hinted(fmt.Errorf("--endpoint-url: %w", err), "write it like http://127.0.0.1:8345")
		}
	}
	return nil
}

// checkVisit rejects flags of a visit that exclude each other.
func (f *doctorFlags) checkVisit(c *cobra.Command) error {
	v := f.visit
	switch {
	case f.clean && v.Apply:
		return usage("clean first, then visit again", "--clean and --apply exclude each other")
	case v.Number != "" && !f.clean:
		return usage("add --clean", "--visit is for resources of an earlier visit")
	case v.Number != "" && !doctor.ValidNumber(v.Number):
		return usage("its resources are named weir-doctor-NUMBER-…", "%q is not the number of a visit", v.Number)
	case f.clean && f.output == outputMarkdown:
		return usage("use -o text, json or yaml", "--clean writes no report")
	case !f.clean && !v.Apply && given(c, "subnet", "cluster", "node-role", "instance-type", "other-type") != "":
		return usage("add --apply", "%s needs --apply", given(c, "subnet", "cluster", "node-role", "instance-type", "other-type"))
	case v.Apply && (v.Cluster == "") != (v.NodeRole == ""):
		return usage("give both or neither", "--cluster and --node-role belong together")
	case v.NodeRole != "" && !strings.HasPrefix(v.NodeRole, "arn:"):
		return usage("write it like arn:aws:iam::123456789012:role/nodes", "%q is not an ARN", v.NodeRole)
	}
	return nil
}

// run visits the account, and prints the report.
func (f *doctorFlags) run(ctx context.Context, s surroundings) error {
	var clock doctor.Clock
	o := accounts.New(accounts.Options{Logger: s.quiet(), Getenv: s.getenv}).Options(reconciler.ScopeKey{Account: f.account, Region: f.region, RoleARN: f.role, Endpoint: f.endpoint})
	o.OnCall = clock.OnCall
	client, err := sdk.Open(ctx, o)
	switch e := (*observed.Error)(nil); {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &e) && e.Kind == observed.Transient:
		return hinted(err, "check whether this machine can reach AWS in the region, or --endpoint-url")
	case err != nil:
		return hinted(err, credentialsHint)
	}
	defer client.Close()
	visit := f.visit
	visit.Progress = func(what string) { fmt.Fprintln(s.stderr, wording.Clean(what)) }
	if f.clean {
		return f.cleaned(s, doctor.Clean(ctx, client, visit))
	}
	visit.Number = strings.ToLower(rand.Text()[:8])
	report, err := doctor.Visit(ctx, client, &clock, visit)
	if err != nil {
		return err
	}
	switch f.output {
	case outputText:
		s.diagnosis(report)
	case outputMarkdown:
		err = writeDiagnosis(s.stdout, report)
	default:
		err = s.value(f.output, report)
	}
	if err != nil {
		return err
	}
	switch {
	case len(report.Left) > 0:
		return withCode(exitError)
	case ctx.Err() != nil:
		return ctx.Err()
	case report.Count(doctor.Differs) > 0:
		return withCode(exitChanges)
	}
	return nil
}

// cleaned reports the resources that could not be deleted.
func (f *doctorFlags) cleaned(s surroundings, left []string) error {
	if f.output != outputText {
		if err := s.value(f.output, struct {
			Schema string   `json:"schema"`
			Left   []string `json:"left"`
		}{"weir.dev/doctor-clean/v1", append([]string{}, left...)}); err != nil {
			return err
		}
	} else {
		for _, text := range left {
			fmt.Fprintln(s.stdout, "left: "+wording.Clean(text))
		}
		if len(left) == 0 {
			fmt.Fprintln(s.stdout, "No resources of earlier visits are left.")
		}
	}
	if len(left) > 0 {
		return withCode(exitError)
	}
	return nil
}

var diagnosisHeads = []struct {
	verdict doctor.Verdict
	head    string
}{
	{doctor.Differs, "Not as assumed"},
	{doctor.AsAssumed, "As assumed"},
	{doctor.NotSeen, "Not seen"},
}

// diagnosis prints a report for a reader.
func (s surroundings) diagnosis(r *doctor.Report) {
	p := s.printer(s.stdout)
	for _, part := range diagnosisHeads {
		if r.Count(part.verdict) == 0 {
			continue
		}
		p.Heading(part.head, fmt.Sprint(r.Count(part.verdict)))
		for _, f := range r.Findings {
			if f.Verdict != part.verdict {
				continue
			}
			fmt.Fprintf(s.stdout, "  %s\n", f.Name)
			for _, text := range f.Evidence {
				fmt.Fprintf(s.stdout, "      %s\n", wording.Clean(text))
			}
		}
		fmt.Fprintln(s.stdout)
	}
	for _, text := range r.Left {
		p.Note("left: " + wording.Clean(text))
	}
	fmt.Fprintf(s.stdout, "%d as assumed, %d different, %d not checked; %d calls in %s.\n", r.Count(doctor.AsAssumed), r.Count(doctor.Differs), r.Count(doctor.NotSeen), calls(r), r.Ended.Sub(r.Began).Round(time.Second))
	if r.Count(doctor.Differs) > 0 {
		fmt.Fprintln(s.stdout, "The page reference/assumptions.md explains the consequences. To report a difference, attach the output of -o markdown to an issue.")
	}
}

func calls(r *doctor.Report) (n int) {
	for _, k := range r.Calls {
		n += k
	}
	return n
}

// writeDiagnosis writes a report that can be attached to an issue.
func writeDiagnosis(w io.Writer, r *doctor.Report) error {
	var b strings.Builder
	made := buildOf()
	fmt.Fprintf(&b, "## weir doctor\n\nweir %s %s, region %s, %s, --apply %t\n\n", made.Version, cmp.Or(made.Commit, "without a commit"), r.Region, r.Began.UTC().Format(time.DateTime), r.Applied)
	fmt.Fprintf(&b, "| Assumption | Verdict | What AWS answered |\n| --- | --- | --- |\n")
	cell := func(text string) string {
		return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ", "@", "@\u200b").Replace(wording.Clean(text))
	}
	for _, part := range diagnosisHeads {
		for _, f := range r.Findings {
			if f.Verdict == part.verdict {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, f.Verdict, cell(strings.Join(f.Evidence, "; ")))
			}
		}
	}
	for _, text := range r.Left {
		fmt.Fprintf(&b, "\nLeft: %s\n", cell(text))
	}
	fmt.Fprintf(&b, "\n<details><summary>%d calls</summary>\n\n", calls(r))
	for _, name := range slices.Sorted(maps.Keys(r.Calls)) {
		fmt.Fprintf(&b, "- %s %d\n", name, r.Calls[name])
	}
	b.WriteString("\n</details>\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	return nil
}
