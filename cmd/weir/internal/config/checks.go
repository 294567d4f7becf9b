package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/values"
	"github.com/weir-gitops/weir/source/transport"
)

var (
	instancePattern = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,62}$`)
	namePattern     = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	// targetPattern allows for the length of the values of placeholders.
	targetPattern     = lazyregexp.New(`^(?:[A-Za-z0-9]|\{[1-9]\})(?:[A-Za-z0-9._-]|\{[1-9]\}){0,62}$`)
	dependencyPattern = lazyregexp.New(`^(?:[A-Za-z0-9_*]|\{[1-9]\})(?:[A-Za-z0-9._*-]|\{[1-9]\}){0,255}$`)
	// regionPattern checks only the form, because AWS adds regions.
	regionPattern  = lazyregexp.New(`^[a-z]{2,4}(-[a-z]+)+-[0-9]+$`)
	accountPattern = lazyregexp.New(`^[0-9]{12}$`)
	rolePattern    = lazyregexp.New(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[\x21-\x7e]+$`)
	kmsKeyPattern  = lazyregexp.New(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/[A-Za-z0-9/_-]+$`)
	// sharedKeyPattern matches the ARN of a key, but not of its alias.
	sharedKeyPattern = lazyregexp.New(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$`)
	// ssmPattern matches a path of AWS Systems Manager with room for names below it: a parameter has at
	// most 15 levels, and a join token uses five of them.
	ssmPattern = lazyregexp.New(`^(/[A-Za-z0-9_.-]{1,100}){1,8}$`)
	// tablePattern matches the table names that DynamoDB accepts.
	tablePattern = lazyregexp.New(`^[A-Za-z0-9_.-]{3,255}$`)
	// headerPattern matches names of headers that no other part of a request uses.
	headerPattern = lazyregexp.New(`^[Xx]-[A-Za-z0-9-]{1,62}$|^[Rr]emote-[A-Za-z0-9-]{1,62}$`)
)

// Validators of names and identifiers. They check only the form.
var (
	ValidInstance = instancePattern.MatchString
	ValidName     = namePattern.MatchString // of a source or of a target without placeholders
	ValidVar      = values.Name.MatchString
	ValidKMSKey   = kmsKeyPattern.MatchString
	ValidAccount  = accountPattern.MatchString
	ValidRegion   = regionPattern.MatchString
)

func checkListen(text string) (wrong, help string) {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Sprintf("%q is not an address", text), "write host:port, such as " + DefaultListen
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Sprintf("%q is not a port", port), ""
	}
	return "", ""
}

func checkInterval(text string) (wrong, help string) {
	if strings.HasPrefix(text, "-") {
		wrong = "must be positive"
	}
	return wrong, ""
}

func checkShare(text string) (wrong, help string) {
	if n, err := strconv.Atoi(text); err != nil || n < 1 || n > 100 {
		return fmt.Sprintf("%s is not a valid percentage of AWS's limits", text), "give a percentage from 1 to 100"
	}
	return "", ""
}

// webAddress parses an HTTP address. It returns nil if the text is not one.
func webAddress(text string) *url.URL {
	if u, err := url.Parse(text); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return u
	}
	return nil
}

// checkPage rejects a path, because the page's own links start at the root.
func checkPage(text string) (wrong, help string) {
	if u := webAddress(text); u == nil || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Sprintf("%q is no such address", redact(text)), "write the page's address without a path, such as https://weir.example.com"
	}
	return "", ""
}

// CheckEndpoint returns the fault of an AWS endpoint URL.
func CheckEndpoint(raw string) error {
	if u := webAddress(raw); u == nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is not an http(s) URL of an endpoint", redact(raw))
	}
	return nil
}

func checkEndpoint(text string) (wrong, help string) {
	if err := CheckEndpoint(text); err != nil {
		wrong = err.Error()
	}
	return wrong, ""
}

func checkAWSEndpoint(text string) (wrong, help string) {
	if text == EmbeddedEndpoint {
		return "", ""
	}
	return checkEndpoint(text)
}

func checkEtcd(text string) (wrong, help string) {
	if u := webAddress(text); u == nil || u.Port() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Sprintf("%q is not an http(s) address of an etcd member", redact(text)), "write it with its port, such as https://etcd-0:2379"
	}
	return "", ""
}

func checkSource(text string) (wrong, help string) {
	if _, err := transport.SchemeOf(text); err != nil {
		wrong = err.Error()
	}
	return wrong, ""
}

func checkProxy(text string) (wrong, help string) {
	switch u, err := url.Parse(text); {
	case err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme):
		return fmt.Sprintf("%q is not an http, https or socks5 URL", redact(text)), ""
	case u.User != nil:
		return "the URL contains credentials, which must not be in the configuration", "give proxyAuth with username and passwordFile"
	}
	return "", ""
}

// checkReceiver never shows the address, because most of it may be secret.
func checkReceiver(text string) (wrong, help string) {
	switch u := webAddress(text); {
	case u == nil || u.Fragment != "":
		return "this is not an http(s) address", "write it like https://hooks.example.com/weir"
	case u.User != nil:
		return "the address contains credentials, which must not be in the configuration", "the receiver identifies weir by the signature"
	}
	return "", ""
}

func checkPath(text string) (wrong, help string) {
	if _, err := targetspec.ParseGlob(text); err != nil {
		wrong = err.Error()
	}
	return wrong, ""
}

// SSMPrefixFault explains why weir cannot store parameters below a prefix, and what to write instead. It
// returns "" if weir can.
func SSMPrefixFault(prefix string) (why, wayOut string) {
	root := strings.ToLower(strings.TrimPrefix(prefix, "/"))
	switch {
	case !ssmPattern.MatchString(prefix):
		return fmt.Sprintf("%q is not a valid prefix for names of parameters", prefix),
			"write it like /weir: up to eight parts of letters, digits, dots, dashes and underscores, each after a slash, and none at the end"
	case strings.HasPrefix(root, "aws") || strings.HasPrefix(root, "ssm"):
		return "AWS reserves names that start with aws or ssm", "write another one, such as /weir"
	}
	return "", ""
}

func checkZone(text string) (wrong, help string) {
	if _, err := (targetspec.Window{Timezone: text}).Zone(); err != nil {
		return fmt.Sprintf("%q is not a time zone", text), "write an IANA name such as Europe/Berlin or UTC"
	}
	return "", ""
}

// redact removes parts that may be credentials from a text that is not a valid URL.
func redact(raw string) string {
	if before, _, query := strings.Cut(raw, "?"); query {
		raw = before + "?…"
	}
	if at := strings.LastIndex(raw, "@"); at >= 0 {
		return "…" + raw[at:]
	}
	return raw
}
