package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/iampolicy"
	"github.com/weir-gitops/weir/reconciler/partition"
	"github.com/weir-gitops/weir/status/terminal"
	"github.com/weir-gitops/weir/status/wording"
)

const policyHelp = `Print the smallest IAM policies that weir needs: for the role that applies, for the role
that only plans, and for the daemon's own identity. That identity assumes these roles, and
uses the DynamoDB table and the KMS keys that coordination names.

With --config it renders the targets at the commit that their source follows, and prints
one policy for each account and role. It limits iam:PassRole to the roles that pools,
nodegroups and hooks name. It sends no request to AWS. Without --config, the flags
--account, --region and --instance say what the policy is for.

The policies limit writes to resources with the instance's tag weir.dev/owner. If AWS
has no resource-level permissions for an action, the Sid says so.

-o json prints a single policy in the form that IAM accepts, and several as
weir.dev/policies/v1. --plan, --apply and --daemon select policies. --trust prints the trust
policy of a role instead: for a machine (instance), for another role (its ARN), or for a
service account in Kubernetes (the ARN of the cluster's OIDC provider).
`

// policyFlags contains the inputs of policies.
type policyFlags struct {
	config, account, instance, trust, serviceAccount, from string
	regions, passRoles, kmsKeys, ssmPrefixes               []string
	plan, apply, daemon, adopt                             bool
}

func policyCommand(s surroundings) *cobra.Command {
	var flags policyFlags
	var output string
	c := &cobra.Command{
		Use:   "policy (--config FILE [TARGET…] | --account ID --region REGION --instance NAME) [flags]",
		Short: "print the smallest IAM policies that weir needs",
		Long:  policyHelp + exitHelp("policy"),
		Example: `  weir policy --config weir.yaml
  weir policy --config weir.yaml prod --apply -o json > apply.json
  weir policy --account 123456789012 --region eu-west-1 --instance prod --plan -o json
  weir policy --trust arn:aws:iam::123456789012:role/weir-daemon -o json`,
		Args: cobra.ArbitraryArgs,
	}
	f := c.Flags()
	f.StringVar(&flags.config, "config", "", "configuration file; the arguments are names of its targets (default: all)")
	f.StringVar(&flags.account, "account", "", "account of targets that have no accountID")
	f.StringArrayVar(&flags.regions, "region", nil, "`REGION`, without --config; may be repeated")
	f.StringVar(&flags.instance, "instance", "", "name of the weir instance, without --config")
	f.BoolVar(&flags.plan, "plan", false, "the policy for plans")
	f.BoolVar(&flags.apply, "apply", false, "the policy for applying")
	f.BoolVar(&flags.daemon, "daemon", false, "the policy of the daemon's own identity")
	f.StringArrayVar(&flags.passRoles, "pass-role", nil, "`ARN` of a role that machines get, if Git does not name it; may be repeated")
	f.StringArrayVar(&flags.kmsKeys, "kms-key-arn", nil, "`ARN` of a KMS key that decrypts SOPS files, without --config; may be repeated")
	f.StringArrayVar(&flags.ssmPrefixes, "ssm-prefix", nil, "`PATH` below which weir writes parameters, such as /weir, without --config; may be repeated")
	f.BoolVar(&flags.adopt, "adopt", false, "allow weir adopt: tags on resources without an owner")
	f.StringVar(&flags.from, "from", "", "allow weir adopt --from this owner")
	f.StringVar(&flags.trust, "trust", "", "print a trust policy for instance, the ARN of a role, or the ARN of an OIDC provider")
	f.StringVar(&flags.serviceAccount, "service-account", "weir/weir", "namespace and name of the service account, with --trust")
	outputFlag(c, &output, outputText, outputJSON, outputYAML)
	c.ValidArgsFunction = completeTargets(s, &flags.config)
	complete(c, "trust", func(string) []string { return []string{"instance"} })
	c.RunE = func(c *cobra.Command, args []string) error {
		if flags.trust != "" {
			return flags.printTrust(c, s, output)
		}
		if err := flags.check(c, args); err != nil {
			return err
		}
		var made []iampolicy.RolePolicy
		var err error
		if flags.config != "" {
			made, err = flags.ofConfig(c.Context(), s, args)
		} else {
			made = flags.ofFlags()
		}
		if len(made) == 0 && err == nil {
			return usage("the daemon's own identity then needs the policy of --apply", "no target has a role for the daemon to assume")
		}
		if len(made) > 0 {
			if e := printPolicies(s, output, made); e != nil {
				return e
			}
		}
		return err
	}
	return c
}

// check rejects flags that exclude each other.
func (f *policyFlags) check(c *cobra.Command, args []string) error {
	for _, arn := range append(slices.Clone(f.passRoles), f.kmsKeys...) {
		if !strings.HasPrefix(arn, "arn:") {
			return usage("write it like arn:aws:iam::123456789012:role/nodes", "%q is not an ARN", arn)
		}
	}
	for _, prefix := range f.ssmPrefixes {
		if why, wayOut := config.SSMPrefixFault(prefix); why != "" {
			return usage(wayOut, "--ssm-prefix: %s", why)
		}
	}
	if f.account != "" && !config.ValidAccount(f.account) {
		return usage("an account has twelve digits", "%q is not an AWS account", f.account)
	}
	if f.config != "" {
		if flag := given(c, "region", "instance", "kms-key-arn", "ssm-prefix"); flag != "" {
			return usage("omit the flag: the configuration defines it", "%s is for policies without --config", flag)
		}
		return nil
	}
	switch {
	case len(args) > 0:
		return usage("add --config FILE", "names of targets need a configuration")
	case f.account == "" || len(f.regions) == 0 || f.instance == "":
		return usage("weir policy --config FILE [TARGET…], or weir policy --account ID --region REGION --instance NAME", "give a configuration, or account, region and instance")
	case !config.ValidInstance(f.instance):
		return usage("use lower-case letters, digits and dashes", "%q cannot be the name of an instance", f.instance)
	}
	for _, r := range f.regions {
		if !config.ValidRegion(r) {
			return usage("regions are named like eu-west-1", "%q does not look like a region", r)
		}
	}
	return nil
}

// wants reports whether a kind of policy is requested; without a flag all are.
func (f *policyFlags) wants(a iampolicy.Access) bool {
	asked := map[iampolicy.Access]bool{iampolicy.Plan: f.plan, iampolicy.Apply: f.apply, iampolicy.Daemon: f.daemon}
	return asked[a] || !f.plan && !f.apply && !f.daemon
}

// printTrust prints the trust policy of a role.
func (f *policyFlags) printTrust(c *cobra.Command, s surroundings, output string) error {
	if flag := given(c, "config", "account", "region", "instance", "plan", "apply", "daemon", "pass-role", "kms-key-arn", "ssm-prefix", "adopt", "from"); flag != "" {
		return usage("use only one of them", "--trust and %s exclude each other", flag)
	}
	var doc iampolicy.Document
	namespace, account, both := strings.Cut(f.serviceAccount, "/")
	switch {
	case f.trust == "instance":
		doc = iampolicy.TrustInstances("aws")
	case strings.HasPrefix(f.trust, "arn:") && strings.Contains(f.trust, ":oidc-provider/"):
		if !both || namespace == "" || account == "" {
			return usage("write it like weir/weir", "--service-account cannot be %q", f.serviceAccount)
		}
		doc = iampolicy.TrustServiceAccount(f.trust, namespace, account)
	case strings.HasPrefix(f.trust, "arn:"):
		doc = iampolicy.TrustRole(f.trust)
	default:
		return usage("it is instance, the ARN of a role, or the ARN of an OIDC provider", "--trust cannot be %q", f.trust)
	}
	if output == outputText {
		output = outputJSON
	}
	return s.value(output, doc)
}

// ofConfig returns the policies for a configuration's targets, one for each account and role. If it cannot
// render a target, it returns an error together with the other policies, because the roles of that target
// are missing.
func (f *policyFlags) ofConfig(ctx context.Context, s surroundings, names []string) ([]iampolicy.RolePolicy, error) {
	c, err := s.loadConfig(f.config)
	if err != nil {
		return nil, err
	}
	w, targets, err := workspace.Compose(ctx, workspace.Env{Getenv: s.getenv, Secrets: s.secrets, Logger: s.quiet()}, c, names)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	roles := iampolicy.Roles{Separate: f.plan, Table: c.Coordination.DynamoDB.Table, TableRegion: c.Coordination.DynamoDB.Region,
		Instance: c.Instance, SharedKeys: c.Coordination.KMSKeyARNs}
	var blind []string
	w.Each(func(key reconciler.ScopeKey, d *reconciler.Desired) {
		t := targets[d.Policy.Target]
		if err != nil || t.Config == nil {
			return
		}
		if d.Policy.Region == "" || d.Set == nil || d.Diagnostics.HasErrors() {
			s.printer(s.stderr).Diagnostics(d.Diagnostics)
		}
		if d.Policy.Region == "" { // it is not applied anywhere, so it needs no permissions
			err = d.Err // the targets are unknown
			return
		}
		if d.Set == nil || d.Diagnostics.HasErrors() {
			blind = append(blind, t.Name)
		}
		account := cmp.Or(key.Account, t.Config.AccountID, iampolicy.AccountOf(key.RoleARN), f.account)
		if account == "" {
			err = usage("write accountID into the target, or give --account", "the account of target %s is unknown", t.Name)
			return
		}
		roles.Add(iampolicy.Need{
			Target: t.Name, Account: account, Region: d.Policy.Region, Instance: c.Instance, PlanRole: t.Config.PlanRoleARN, ApplyRole: key.RoleARN, Assume: t.Config.AllowedRoleARNs,
			KMSKeys: t.Config.KMSKeyARNs, SSMPrefixes: t.Config.SSMPrefixes, PassRoles: f.passRoles, Adopt: f.adopt || t.Config.AllowAdopt, From: f.from, Set: d.Set,
		})
	})
	if err != nil {
		return nil, err
	}
	if len(blind) > 0 && len(f.passRoles) == 0 {
		err = usage("correct the faults above, or name the roles with --pass-role", "%s cannot be rendered, so weir cannot list all roles to pass", advice.JoinNames(blind))
	}
	return roles.Policies(f.wants), err
}

// ofFlags returns the policies of an account without reading Git.
func (f *policyFlags) ofFlags() (out []iampolicy.RolePolicy) {
	scope := iampolicy.Scope{
		Partition: partition.Of(f.regions[0]).ID, Account: f.account, Regions: f.regions, Instance: f.instance,
		KMSKeys: f.kmsKeys, SSMPrefixes: f.ssmPrefixes, Alarms: true, Drains: true, Adopt: f.adopt, From: f.from,
	}
	for _, arn := range f.passRoles {
		scope.Pass(arn)
	}
	var notes []string
	if len(f.passRoles) == 0 {
		notes = append(notes, "no role may be passed: name those of instance profiles and nodegroups with --pass-role")
	}
	for _, a := range []iampolicy.Access{iampolicy.Plan, iampolicy.Apply} {
		if f.wants(a) {
			out = append(out, iampolicy.ForRole(a, "", scope, nil, notes))
		}
	}
	return out
}

// printPolicies prints policies as text or as data.
func printPolicies(s surroundings, output string, list []iampolicy.RolePolicy) error {
	if output != outputText {
		if len(list) == 1 {
			for _, n := range list[0].Notes {
				fmt.Fprintf(s.stderr, "note: %s\n", wording.Clean(n))
			}
			return s.value(output, list[0].Policy)
		}
		return s.value(output, struct {
			Schema   string                 `json:"schema"`
			Policies []iampolicy.RolePolicy `json:"policies"`
		}{"weir.dev/policies/v1", list})
	}
	p := s.printer(s.stdout)
	for i, r := range list {
		if i > 0 {
			fmt.Fprintln(s.stdout)
		}
		var facts []string
		if r.Account != "" {
			facts = append(facts, "account "+r.Account, strings.Join(r.Regions, ", "))
		}
		if len(r.Targets) > 0 {
			facts = append(facts, "for "+advice.JoinNames(r.Targets))
		}
		p.Heading(titleOf(r), strings.Join(facts, "  "))
		for _, n := range r.Notes {
			p.Note(n)
		}
		var b bytes.Buffer
		if err := terminal.JSON(&b, r.Policy); err != nil {
			return err
		}
		if _, err := s.stdout.Write(b.Bytes()); err != nil {
			return fmt.Errorf("print policy: %w", err)
		}
	}
	return nil
}

// titleOf returns a title with the owner of the policy.
func titleOf(r iampolicy.RolePolicy) string {
	what := map[iampolicy.Access]string{iampolicy.Plan: "To plan", iampolicy.Apply: "To apply"}[r.For]
	if r.For == iampolicy.Daemon {
		purposes := map[string]string{
			iampolicy.AssumedRoles: "assume the roles of the targets", iampolicy.SharedTable: "share the table", iampolicy.SharedKeys: "encrypt the keys that it shares",
		}
		var all []string
		for _, of := range r.Policy.Statement {
			all = append(all, purposes[of.Sid])
		}
		slices.Sort(all)
		what = "To " + strings.Join(all, " and to ")
	}
	switch {
	case r.Role != "":
		return what + ": role " + wording.Clean(r.Role)
	case r.For == iampolicy.Daemon, len(r.Targets) > 0:
		return what + ": the daemon's own identity"
	}
	return what
}
