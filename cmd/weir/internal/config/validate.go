package config

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/target"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/values"
)

var (
	instancePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	namePattern     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	// targetPattern leaves room for what placeholders stand for.
	targetPattern  = regexp.MustCompile(`^(?:[A-Za-z0-9]|\{[1-9]\})(?:[A-Za-z0-9._-]|\{[1-9]\}){0,62}$`)
	regionPattern  = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]+$`)
	accountPattern = regexp.MustCompile(`^[0-9]{12}$`)
	rolePattern    = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[\x21-\x7e]+$`)
	kmsKeyPattern  = regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/[A-Za-z0-9/_-]+$`)
	varPattern     = values.Name
)

// ValidInstance reports whether name can be the name of an instance.
func ValidInstance(name string) bool { return instancePattern.MatchString(name) }

// ValidName reports whether name can be the name of a target or a source.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// ValidVar reports whether name can be the name of a variable.
func ValidVar(name string) bool { return varPattern.MatchString(name) }

// ValidKMSKey reports whether arn has the form of a KMS key's or alias' ARN.
func ValidKMSKey(arn string) bool { return kmsKeyPattern.MatchString(arn) }

// ValidAccount reports whether id has the form of an AWS account.
func ValidAccount(id string) bool { return accountPattern.MatchString(id) }

// ValidRegion reports whether region has the form of a region's name. AWS adds
// regions, so only the form is checked.
func ValidRegion(region string) bool { return regionPattern.MatchString(region) }

// validator checks a decoded configuration, all of it.
type validator struct {
	config  *Config
	decoder *decoder
}

// fault reports what is wrong at a path, at its place in the file or else at
// that of what is around it.
func (v *validator) fault(at, code, detail, format string, args ...any) {
	v.decoder.faults = append(v.decoder.faults, diag.Diagnostic{
		Severity: diag.Error, Code: code, Summary: at + ": " + fmt.Sprintf(format, args...), Detail: detail, Position: v.position(at),
	})
}

func (v *validator) position(at string) diag.Position {
	for {
		if pos, ok := v.decoder.at[at]; ok {
			return pos
		}
		cut := strings.LastIndexAny(at, ".[")
		if cut < 0 {
			return diag.Position{File: v.config.File}
		}
		at = at[:cut]
	}
}

func (v *validator) run() {
	c := v.config
	if c.APIVersion != APIVersion {
		v.fault("apiVersion", "bad-value", "", "want %s, got %q", APIVersion, c.APIVersion)
	}
	if c.Kind != Kind {
		v.fault("kind", "bad-value", "", "want %s, got %q", Kind, c.Kind)
	}
	switch {
	case c.Instance == "":
		v.fault("instance", "missing-key", "it is the owner tag of all that this weir makes; no other weir in the same accounts may have it", "a name of this instance is required")
	case !ValidInstance(c.Instance):
		v.fault("instance", "bad-value", "", "%q does not match %s", c.Instance, instancePattern)
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil {
		v.fault("listen", "bad-value", "write host:port, such as "+DefaultListen, "%q is no address", c.Listen)
	} else if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		v.fault("listen", "bad-value", "", "%q is no port", port)
	}
	v.publicURL(c.PublicURL)
	v.access()
	if c.Interval < 0 {
		v.fault("interval", "bad-value", "", "must be positive")
	}
	if c.AWS.Endpoint != EmbeddedEndpoint {
		v.endpoint("aws.endpoint", c.AWS.Endpoint)
	}
	v.sources()
	v.forges()
	v.notify()
	v.targets()
}

// publicURL has no path, as the page's own links begin without one.
func (v *validator) publicURL(raw string) {
	u, err := url.Parse(raw)
	if raw != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "") {
		v.fault("publicURL", "bad-value", "write the page's address without a path, such as https://weir.example.com", "%q is no such address", redact(raw))
	}
}

// endpoint checks the URL of an AWS endpoint; empty is fine.
func (v *validator) endpoint(at, raw string) {
	if err := CheckEndpoint(raw); raw != "" && err != nil {
		v.fault(at, "bad-value", "", "%v", err)
	}
}

// CheckEndpoint says what is wrong with the URL of an AWS endpoint.
func CheckEndpoint(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is no http(s) URL of an endpoint", redact(raw))
	}
	return nil
}

// redact drops what may be credentials from a text that is no proper URL.
func redact(raw string) string {
	if before, _, query := strings.Cut(raw, "?"); query {
		raw = before + "?…"
	}
	if at := strings.LastIndex(raw, "@"); at >= 0 {
		return "…" + raw[at:]
	}
	return raw
}

func (v *validator) name(at, name string, seen map[string]string) {
	switch first, taken := seen[name]; {
	case name == "":
		v.fault(at, "missing-key", "", "a name is required")
	case !namePattern.MatchString(name):
		v.fault(at, "bad-value", "", "%q does not match %s", name, namePattern)
	case taken:
		v.fault(at, "duplicate-name", "", "%q is the name of %s already", name, first)
	default:
		seen[name] = strings.TrimSuffix(at, ".name")
	}
}

func (v *validator) hasSource(name string) bool {
	return slices.ContainsFunc(v.config.Sources, func(s Source) bool { return s.Name == name })
}

func (v *validator) sourceRef(at, name string) {
	switch {
	case name == "":
		v.fault(at, "missing-key", "", "the name of a source is required")
	case !v.hasSource(name):
		v.fault(at, "unknown-source", "", "there is no source %q", name)
	}
}

func (v *validator) forges() {
	taken := map[string]int{}
	for i := range v.config.Forges {
		f, at := &v.config.Forges[i], fmt.Sprintf("forges[%d]", i)
		if !slices.Contains([]string{GitHub, GitLab, Gitea, Forgejo, Generic}, f.Type) {
			v.fault(at+".type", "bad-value", "", "want %s, %s, %s, %s or %s, got %q", GitHub, GitLab, Gitea, Forgejo, Generic, f.Type)
		}
		u, err := url.Parse(f.URL)
		if f.Type == Generic && f.URL == "" {
			// The source's own address is enough.
		} else if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Count(strings.Trim(u.Path, "/"), "/") < 1 {
			v.fault(at+".url", "bad-value", "write it like https://github.com/owner/repository", "%q is not the address of a repository", redact(f.URL))
		}
		v.sourceRef(at+".source", f.Source)
		if first, ok := taken[f.Source]; ok && f.Source != "" {
			v.fault(at+".source", "duplicate-name", "", "source %q has forges[%d] already", f.Source, first)
		}
		taken[f.Source] = i
		if f.Type == Generic {
			v.generic(at, f)
		} else {
			v.forgeToken(at, f)
		}
		v.pulls(at, f)
	}
}

func (v *validator) targets() {
	if len(v.config.Targets) == 0 {
		v.fault("targets", "missing-key", "", "at least one target is required")
	}
	names := map[string]string{}
	for i := range v.config.Targets {
		t, at := &v.config.Targets[i], fmt.Sprintf("targets[%d]", i)
		v.targetName(at, t, names)
		v.sourceRef(at+".source", t.Source)
		if t.Region == "" && len(t.Table) == 0 {
			v.fault(at+".region", "missing-key", "", "the AWS region is required")
		}
		if g, err := target.ParseGlob(t.Path); err == nil { // else it has been said
			v.accountRegion(at, t, g)
			v.varsFrom(at, t, g)
		}
		v.table(at, t)
		v.ageKeys(at, t)
		v.joinTokens(at, t)
		if t.Mode != target.Correct && t.Mode != target.Report {
			v.fault(at+".mode", "bad-value", "", "want %s or %s, got %q", target.Correct, target.Report, t.Mode)
		}
		if t.Apply != target.Always && t.Apply != target.AsReviewed {
			v.fault(at+".apply", "bad-value", "", "want %s or %s, got %q", target.Always, target.AsReviewed, t.Apply)
		}
		v.windows(at+".windows", t.Windows)
	}
	v.planRoles()
	v.dependencies()
}

func (v *validator) targetName(at string, t *target.Target, names map[string]string) {
	if t.Name != "" && !targetPattern.MatchString(t.Name) {
		v.fault(at+".name", "bad-value", "", "%q: use letters, digits, dots, dashes, underscores and {1} to {9}", t.Name)
	} else {
		switch first, taken := names[t.Name]; {
		case t.Name == "":
			v.fault(at+".name", "missing-key", "", "a name is required")
		case taken:
			v.fault(at+".name", "duplicate-name", "", "%q is the name of %s already", t.Name, first)
		default:
			names[t.Name] = at
		}
	}
	g, err := target.ParseGlob(t.Path)
	if err != nil {
		v.fault(at+".path", "bad-value", "", "%v", err)
		return
	}
	used := map[int]bool{}
	for _, m := range target.Placeholder.FindAllStringSubmatch(t.Name, -1) {
		n := int(m[1][0] - '0')
		used[n] = true
		if n > g.Wildcards() {
			v.fault(at+".name", "bad-value", "", "{%d} stands for a wildcard that path %q does not have", n, t.Path)
		}
	}
	for n := 1; n <= g.Wildcards(); n++ {
		if !used[n] {
			v.fault(at+".name", "bad-value", "", "the path has %d wildcard(s), so the name needs {%d} to tell its targets apart", g.Wildcards(), n)
		}
	}
}

func (v *validator) varsFrom(at string, t *target.Target, g target.Glob) {
	for j, from := range t.VarsFrom {
		at := fmt.Sprintf("%s.varsFrom[%d]", at, j)
		switch {
		case from.File == "" && from.Path == "":
			v.fault(at, "missing-key", "", "a file on this machine, or the path of one in the repository, is required")
		case from.File != "" && from.Path != "":
			v.fault(at, "bad-value", "write an entry for each", "file and path are two files")
		case from.Path != "" && from.Secret:
			v.fault(at+".secret", "bad-value", "put secret values into a file on this machine, or have SOPS encrypt the manifests that hold them", "a file of the repository is read by everybody who reads that")
		}
		if from.Path != "" {
			v.valuePath(at+".path", from.Path, g)
		}
		v.placeholders(at+".file", from.File, g)
		v.placeholders(at+".path", from.Path, g)
	}
}

// valuePath checks that a file of the repository is below the source's root, whatever
// the target's wildcards stand for.
func (v *validator) valuePath(at, p string, g target.Glob) {
	dir := g.String()
	if g.OfFiles() {
		dir = path.Dir(dir)
	}
	if _, err := target.CleanPath(path.Join(dir, p)); err != nil || path.IsAbs(p) || strings.Contains(p, "\\") {
		v.fault(at, "bad-value", "write it relative to the target's directory, such as values.env", "%q is not a path below the source's root", p)
	}
}

// ageKeys and kmsKeys check what the target's encrypted files are decrypted with.
func (v *validator) ageKeys(at string, t *target.Target) {
	for i, file := range t.AgeKeyFiles {
		if file == "" {
			v.fault(fmt.Sprintf("%s.ageKeyFiles[%d]", at, i), "missing-key", "", "a file is required")
		}
	}
}

func (v *validator) kmsKeys(at string, t *target.Target) {
	for i, arn := range t.KMSKeyARNs {
		if !ValidKMSKey(arn) {
			v.fault(fmt.Sprintf("%s.kmsKeyARNs[%d]", at, i), "bad-value", "give each key in full, as the files name it; there are no wildcards", "%q is not the ARN of a KMS key", arn)
		}
	}
}

func (v *validator) roles(at string, t *target.Target) {
	for _, role := range []struct{ key, arn string }{{"roleARN", t.RoleARN}, {"planRoleARN", t.PlanRoleARN}} {
		switch account := accountOf(role.arn); {
		case role.arn == "":
		case !rolePattern.MatchString(role.arn):
			v.fault(at+"."+role.key, "bad-value", "", "%q is not the ARN of a role", role.arn)
		case t.AccountID != "" && account != t.AccountID:
			v.fault(at+"."+role.key, "bad-value", "", "the role is in account %s, but accountID is %s", account, t.AccountID)
		}
	}
	for i, r := range t.AllowedRoleARNs {
		if !rolePattern.MatchString(r) {
			v.fault(fmt.Sprintf("%s.allowedRoleARNs[%d]", at, i), "bad-value", "give each role in full; there are no wildcards", "%q is not the ARN of a role", r)
		}
	}
}

func (v *validator) network(at string, n target.Network) {
	if n.VPCID != "" && !strings.HasPrefix(n.VPCID, "vpc-") {
		v.fault(at+".vpcID", "bad-value", "", "%q is not the id of a VPC", n.VPCID)
	}
	for i, id := range n.SubnetIDs {
		if !strings.HasPrefix(id, "subnet-") {
			v.fault(fmt.Sprintf("%s.subnetIDs[%d]", at, i), "bad-value", "", "%q is not the id of a subnet", id)
		}
	}
	for i, id := range n.SecurityGroupIDs {
		if !strings.HasPrefix(id, "sg-") {
			v.fault(fmt.Sprintf("%s.securityGroupIDs[%d]", at, i), "bad-value", "", "%q is not the id of a security group", id)
		}
	}
}
