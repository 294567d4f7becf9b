package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/pulls"
)

// rule describes the values of one key, for the schema and for validation. Rules about several keys are
// code, in validate.go and in the files of the types.
type rule struct {
	// missing is the message if a section does not contain the key, and add the remedy. The section itself
	// may be absent. required replaces missing for a key without a special message.
	missing, add string
	required     bool
	// words lists the only valid values, form is their pattern, and check returns the fault of a value and
	// the remedy.
	words []string
	form  *lazyregexp.Regexp
	check func(text string) (wrong, help string)
	// wrong and help are the message about a value that is not in words or form, if these do not explain it
	// themselves.
	wrong, help string
	// twice returns the message if another key with the same path already has the value. Its arguments are
	// the value and the position of the other key.
	twice string
	// credential marks a key with the name of a file that no other user should be able to read.
	credential bool
	// initial is the default value.
	initial any
}

const (
	goodSecret = "openssl rand -hex 32 makes a good secret"
	goodKey    = "openssl rand -base64 32 makes its content; give every daemon the same"
)

var (
	named = rule{missing: "a name is required", form: namePattern, twice: "%q is the name of %s already"}
	role  = rule{form: rolePattern, wrong: "%q is not the ARN of a role"}
)

// header returns the rule of a key whose value names an HTTP header that a proxy sets.
func header(initial string) rule {
	return rule{form: headerPattern, wrong: "%q is not a permitted header name", help: "the name must start with X- or Remote-", initial: initial}
}

// id returns the rule of an EC2 identifier: a prefix and 8 or 17 hexadecimal digits.
func id(prefix, of string) rule {
	return rule{form: lazyregexp.New("^" + prefix + "([0-9a-f]{8}|[0-9a-f]{17})$"), wrong: "%q is not the id of a " + of}
}

// rules contains the rules of keys by path; [] stands for an entry of a list. Rows of a target's table use
// the rules of the target.
var rules = map[string]rule{
	"apiVersion":   {required: true, words: []string{APIVersion}},
	"kind":         {required: true, words: []string{Kind}},
	"instance":     {missing: "a name for this instance is required", add: "it is the owner tag of every resource that this weir creates; no other weir in the same accounts can have it", form: instancePattern},
	"listen":       {check: checkListen, initial: DefaultListen},
	"publicURL":    {check: checkPage},
	"interval":     {check: checkInterval, initial: "1m"},
	"aws.endpoint": {check: checkAWSEndpoint},

	"aws.shareOfLimits": {check: checkShare, initial: 100},

	"limits.targets": {initial: targetspec.DefaultTargets},
	"limits.pools":   {initial: targetspec.DefaultPools},
	"limits.nodes":   {initial: targetspec.DefaultNodes},

	"access.anonymous":          {words: []string{access.AnonymousNone, access.AnonymousRead}},
	"access.withoutTLS":         {words: []string{access.BehindProxy, access.Insecure}},
	"access.tokens[].name":      named,
	"access.tokens[].role":      {required: true, words: access.Roles},
	"access.tokens[].file":      {missing: "a file with the token is required", add: "openssl rand -hex 32 makes a good token", credential: true},
	"access.rules[].role":       {required: true, words: access.Roles},
	"access.proxy.userHeader":   header(access.DefaultUserHeader),
	"access.proxy.groupsHeader": header(access.DefaultGroupsHeader),
	"access.proxy.secretHeader": header(access.DefaultSecretHeader),
	"access.proxy.secretFile":   {credential: true},

	"coordination.keysFile":             {credential: true},
	"coordination.kmsKeyARNs[]":         {missing: "the ARN of a key is required", form: sharedKeyPattern, wrong: "%q is not the ARN of a KMS key", help: "give the full ARN of the key, not of an alias: policies can only allow keys"},
	"coordination.dynamodb.table":       {missing: "the table's name is required", form: tablePattern, wrong: "%q is not a valid name for a table", help: "use 3 to 255 letters, digits, dots, dashes and underscores"},
	"coordination.dynamodb.region":      {missing: "the table's region is required", form: regionPattern, wrong: "%q does not look like a region"},
	"coordination.dynamodb.endpointURL": {check: checkEndpoint},
	"coordination.etcd.endpoints":       {missing: "the addresses of etcd's members are required", add: "such as https://etcd-0:2379"},
	"coordination.etcd.endpoints[]":     {check: checkEtcd},
	"coordination.etcd.keyFile":         {credential: true},
	"coordination.etcd.passwordFile":    {credential: true},

	"sources":                         {missing: "at least one source is required"},
	"sources[].name":                  named,
	"sources[].url":                   {missing: "the repository's url is required", check: checkSource},
	"sources[].interval":              {check: checkInterval, initial: "30s"},
	"sources[].imageUpdates.every":    {check: checkEvery},
	"sources[].proxy":                 {check: checkProxy},
	"sources[].auth.tokenFile":        {credential: true},
	"sources[].auth.passwordFile":     {credential: true},
	"sources[].verify.mode":           {words: []string{"commit", "tag", "either"}, wrong: "%q must be commit, tag or either", initial: "commit"},
	"sources[].verify.pgp.keyFiles[]": {missing: "a file is required"},

	"forges[].type":                         {required: true, words: forge.Kinds()},
	"forges[].source":                       {twice: "source %q has %s already"},
	"forges[].tokenFile":                    {credential: true},
	"forges[].webhookSecretFile":            {credential: true},
	"forges[].pullRequests.plan":            {words: []string{pulls.Always, pulls.Never}, initial: pulls.Always},
	"forges[].pullRequests.drafts":          {words: []string{pulls.DraftsPlan, pulls.DraftsWait}, initial: pulls.DraftsPlan},
	"forges[].pullRequests.forecast":        {words: []string{pulls.Always, pulls.Never}, initial: pulls.Always},
	"forges[].pullRequests.forks.allowBy[]": {words: []string{pulls.ByComment, pulls.ByLabel}},
	"forges[].pullRequests.forks.label":     {initial: pulls.DefaultForkLabel},

	"forges[].push.tokenFile": {credential: true},
	"forges[].push.for[]":     {words: purposes, wrong: "%q is not a purpose of pull requests of weir's own", help: "weir pushes for revert, images and accept"},
	"forges[].push.author":    {check: checkAuthor, initial: defaultAuthor},

	"notify[].url":        {missing: "an address is required", check: checkReceiver, twice: "%[2]s has the same address"},
	"notify[].secretFile": {missing: "a file with the secret for signatures is required", add: goodSecret},
	"notify[].events[]":   {words: kinds.All(), wrong: "unknown kind of event %q", help: "/api/v1/events shows events with their kinds"},

	"gateProviders[].name":         named,
	"gateProviders[].type":         {required: true, words: []string{Prometheus}},
	"gateProviders[].url":          {missing: "the server's address is required", add: "such as https://prometheus.example.com", check: checkProvider},
	"gateProviders[].tokenFile":    {credential: true},
	"gateProviders[].passwordFile": {credential: true},

	"targets":                              {missing: "at least one target is required"},
	"targets[].name":                       {missing: named.missing, form: targetPattern, wrong: "%q: use letters, digits, dots, dashes, underscores and {1} to {9}", twice: named.twice},
	"targets[].path":                       {check: checkPath, initial: "."},
	"targets[].region":                     {form: regionPattern, wrong: "%q does not look like a region"},
	"targets[].accountID":                  {form: accountPattern, wrong: "%q is not 12 digits", help: "put it in quotes: YAML may read digits as a number"},
	"targets[].roleARN":                    role,
	"targets[].planRoleARN":                role,
	"targets[].allowedRoleARNs[]":          {form: role.form, wrong: role.wrong, help: "give the full ARN of each role, without wildcards"},
	"targets[].endpointURL":                {check: checkEndpoint},
	"targets[].network.vpcID":              id("vpc-", "VPC"),
	"targets[].network.subnetIDs[]":        id("subnet-", "subnet"),
	"targets[].network.securityGroupIDs[]": id("sg-", "security group"),
	"targets[].ageKeyFiles[]":              {missing: "a file is required"},
	"targets[].kmsKeyARNs[]":               {form: kmsKeyPattern, wrong: "%q is not the ARN of a KMS key", help: "give the full ARN of each key, as in the files, without wildcards"},
	"targets[].ssmPrefixes[]":              {check: SSMPrefixFault},
	"targets[].mode":                       {words: []string{targetspec.Correct, targetspec.Report}, initial: targetspec.Correct},
	"targets[].prune.limit":                {initial: "20%"},
	"targets[].apply":                      {words: []string{targetspec.Always, targetspec.AsReviewed}, initial: targetspec.Always},
	"targets[].dependsOn[]":                {form: dependencyPattern, wrong: "%q: write the name of a target; * matches any text"},
	"targets[].windows[].kind":             {words: []string{targetspec.Allow, targetspec.Deny}, initial: targetspec.Allow},
	"targets[].windows[].days[]":           {words: targetspec.Weekdays, wrong: "want one of mon, tue, wed, thu, fri, sat and sun, got %q"},
	"targets[].windows[].start":            {initial: "00:00"},
	"targets[].windows[].end":              {initial: "24:00"},
	"targets[].windows[].timezone":         {check: checkZone, initial: "UTC"},
}

// ruleOf returns the rule of the key at a path.
func ruleOf(path string) rule {
	return rules[strings.Replace(path, "targets[].table[].", "targets[].", 1)]
}

// isRequired reports whether a configuration without the key is rejected.
func (r rule) isRequired() bool { return r.required || r.missing != "" }

// fault returns the fault of a single value and the remedy, or "" if none exists.
func (r rule) fault(text string) (wrong, help string) {
	switch {
	case r.words != nil && !slices.Contains(r.words, text):
		all, last := r.words[:len(r.words)-1], r.words[len(r.words)-1]
		wrong = "want " + strings.TrimPrefix(strings.Join(all, ", ")+" or "+last, " or ") + ", got %q"
	case r.form != nil && !r.form.MatchString(text):
		wrong = "%q does not match " + r.form.String()
	case r.check != nil:
		return r.check(text)
	default:
		return "", ""
	}
	return fmt.Sprintf(cmp.Or(r.wrong, wrong), text), r.help
}

// each calls see for each key of the configuration: its position, its path without the numbers and keys of
// entries, and its value; "" for an empty list.
func (c *Config) each(see func(at, path, text string)) {
	var visit func(at, path string, x reflect.Value)
	visit = func(at, path string, x reflect.Value) {
		text := ""
		switch x.Kind() {
		case reflect.Struct:
			for _, f := range language.Fields(x.Type()) {
				visit(join(at, f.Name), join(path, f.Name), x.FieldByIndex(f.Index))
			}
			return
		case reflect.Map:
			for k, e := range x.Seq2() {
				visit(at+"."+k.String(), path+"[]", e)
			}
			return
		case reflect.Slice:
			for i := range x.Len() {
				text = "entries"
				visit(fmt.Sprintf("%s[%d]", at, i), path+"[]", x.Index(i))
			}
		default:
			text = fmt.Sprint(x.Interface())
		}
		see(at, path, text)
	}
	visit("", "", reflect.ValueOf(*c))
}

// inSection reports whether the file contains the section of a key.
func (v *findings) inSection(at string) bool {
	cut := strings.LastIndex(at, ".")
	return cut < 0 || v.written(at[:cut])
}

// keys checks each key separately, and that values which must differ do differ.
func (v *validator) keys() {
	type value struct{ path, text string }
	first := map[value]string{}
	v.config.each(func(at, path, text string) {
		r := ruleOf(path)
		wrong, help := r.fault(text)
		before := first[value{path, text}]
		switch {
		case text == "" && r.missing != "" && v.found.inSection(at):
			v.found.fault(at, "missing-key", r.add, "%s", r.missing)
		case text == "" && !r.required && !strings.HasSuffix(path, "[]"):
			// It is missing, or has no value.
		case wrong != "":
			v.found.fault(at, "bad-value", help, "%s", wrong)
		case r.twice == "":
		case before != "":
			v.found.fault(at, "duplicate-name", "", r.twice, text, before)
		default:
			first[value{path, text}] = at[:strings.LastIndex(at, ".")]
		}
	})
}
