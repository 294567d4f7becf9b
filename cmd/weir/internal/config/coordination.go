package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"reflect"
	"strings"

	"github.com/weir-gitops/weir/reconciler/state/files"
	"github.com/weir-gitops/weir/reconciler/targetspec"
)

// Coordination lets several daemons of one instance share its work through an existing database,
// the engine: dynamodb or etcd. Without it the instance has one daemon, which needs only its
// stateDir.
type Coordination struct {
	DynamoDB DynamoDB `yaml:"dynamodb"`
	Etcd     Etcd     `yaml:"etcd"`
	// KeysFile holds the keys that encrypt shared keys of digests and logins. It must be the same
	// for all daemons. Each line is 32 random bytes in base64, as openssl rand -base64 32 prints
	// them. The first line encrypts, and all lines decrypt. Either keysFile or kmsKeyARNs is
	// required.
	KeysFile string `yaml:"keysFile"`
	// KMSKeyARNs lists keys of AWS KMS for the same purpose, used with the daemon's own
	// credentials. The first key encrypts, and all keys decrypt. If keysFile is set too, it only
	// decrypts.
	KMSKeyARNs []string `yaml:"kmsKeyARNs"`
}

// DynamoDB is a table of Amazon DynamoDB, used with the daemon's own credentials.
type DynamoDB struct {
	// Table is the name of the table. weir does not create it, and every instance needs its own
	// table.
	Table string `yaml:"table"`
	// Region is the region of the table.
	Region string `yaml:"region"`
	// EndpointURL replaces the endpoint of DynamoDB. aws.endpoint does not apply here.
	EndpointURL string `yaml:"endpointURL"`
}

// Etcd is a cluster of etcd 3.4 or newer.
type Etcd struct {
	// Endpoints lists the client addresses of etcd's members, such as https://etcd-0:2379.
	Endpoints []string `yaml:"endpoints"`
	// CertFile holds weir's client certificate in PEM.
	CertFile string `yaml:"certFile"`
	// KeyFile holds the private key of certFile in PEM.
	KeyFile string `yaml:"keyFile"`
	// CAFile holds PEM certificates of the trusted authorities. It replaces the system's
	// authorities.
	CAFile string `yaml:"caFile"`
	// UsernameFile holds the name of the etcd user.
	UsernameFile string `yaml:"usernameFile"`
	// PasswordFile holds the password of the etcd user.
	PasswordFile string `yaml:"passwordFile"`
}

// Several reports whether the instance may have other daemons.
func (c *Config) Several() bool { return c.Coordination.Engine() != "" }

// Engine returns the name of the engine, empty for a single daemon.
func (c Coordination) Engine() string {
	switch {
	case c.DynamoDB != DynamoDB{}:
		return "dynamodb"
	case !reflect.ValueOf(c.Etcd).IsZero():
		return "etcd"
	}
	return ""
}

// Same reports whether two values are equal.
func (c Coordination) Same(other Coordination) bool { return reflect.DeepEqual(c, other) }

// setDefaults makes paths absolute.
func (c *Coordination) setDefaults(base string) {
	targetspec.Absolute(base, &c.KeysFile, &c.Etcd.CertFile, &c.Etcd.KeyFile, &c.Etcd.CAFile, &c.Etcd.UsernameFile, &c.Etcd.PasswordFile)
}

// coordination validates the section coordination, except the files that it names: one engine with keys, and
// encrypted connections.
func (v *credentialValidator) coordination() {
	const at = "coordination"
	dynamo, etcd := v.found.written(at+".dynamodb"), v.found.written(at+".etcd")
	switch {
	case !v.found.written(at):
		return
	case dynamo && etcd:
		v.found.fault(at, "bad-value", "use only one of them: members that use another engine do not see each other", "dynamodb and etcd are both set, but an instance has one engine")
	case !dynamo && !etcd:
		v.found.fault(at, "missing-key", "write dynamodb: {table: …, region: …} or etcd: {endpoints: […]}; or remove coordination if there is only one daemon", "an engine is required")
	}
	if v.config.AWS.Endpoint == EmbeddedEndpoint {
		v.found.fault("aws.endpoint", "bad-value", "run one weir emulator for all daemons, and give its address", "several daemons may run, and each would have an embedded AWS of its own")
	}
	if v.config.Coordination.KeysFile == "" && len(v.config.Coordination.KMSKeyARNs) == 0 {
		v.found.fault(at+".keysFile", "missing-key", goodKey+"; or name a key of AWS KMS in kmsKeyARNs", "a file with the instance's key is required")
	}
	v.requireTLS(at+".dynamodb.endpointURL", v.config.Coordination.DynamoDB.EndpointURL)
	v.etcd(at+".etcd", v.config.Coordination.Etcd)
}

// etcd validates coordination.etcd: its endpoints, and that files which belong together are named together.
func (v *credentialValidator) etcd(at string, e Etcd) {
	tls, seen := e.CertFile != "" || e.KeyFile != "" || e.CAFile != "", map[string]bool{}
	for i, address := range e.Endpoints {
		at := fmt.Sprintf("%s.endpoints[%d]", at, i)
		switch {
		case seen[address]:
			v.found.fault(at, "duplicate-name", "", "%q is there twice", redact(address))
		case tls && strings.HasPrefix(address, "http:"):
			v.found.fault(at, "bad-value", "write https://, or leave certFile, keyFile and caFile out", "certFile, keyFile and caFile are for https")
		}
		seen[address] = true
		v.requireTLS(at, address)
	}
	if (e.CertFile == "") != (e.KeyFile == "") {
		v.found.fault(at, "missing-key", "", "certFile and keyFile go together")
	}
	if (e.UsernameFile == "") != (e.PasswordFile == "") {
		v.found.fault(at, "missing-key", "", "usernameFile and passwordFile go together")
	}
}

// requireTLS rejects the address of an engine on another machine without TLS: an attacker who can read and
// change the traffic would decide what is approved.
func (v *credentialValidator) requireTLS(at, raw string) {
	u := webAddress(raw)
	if u == nil || u.Scheme != "http" {
		return // or this was already reported
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		v.found.fault(at, "not-encrypted", "write https://", "%s is on another machine, and without TLS others can read and change the records in transit", u.Host)
	}
}

// coordinationFiles checks the files for the connection to the engine. An unreadable file is an error here,
// because the daemon cannot start without its engine.
func (v *credentialValidator) coordinationFiles() {
	c := v.config.Coordination
	for _, f := range []struct{ key, file string }{
		{"keysFile", c.KeysFile}, {"etcd.certFile", c.Etcd.CertFile}, {"etcd.keyFile", c.Etcd.KeyFile}, {"etcd.caFile", c.Etcd.CAFile},
		{"etcd.usernameFile", c.Etcd.UsernameFile}, {"etcd.passwordFile", c.Etcd.PasswordFile},
	} {
		if f.file == "" {
			continue
		}
		at := "coordination." + f.key
		if _, err := os.ReadFile(f.file); err != nil {
			v.found.fault(at, "credential-file", "make the file, and let the user who runs weir read it", "%v", err)
		} else if ruleOf(at).credential {
			v.credential(at, f.file)
		}
	}
	if c.KeysFile == "" {
		return
	}
	if _, err := files.ReadKeys(c.KeysFile); err != nil && !errors.As(err, new(*fs.PathError)) { // that was already reported
		v.found.fault("coordination.keysFile", "credential-file", goodKey, "%v", err)
	}
}
