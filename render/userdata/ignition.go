package userdata

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/unit"
	v2 "github.com/flatcar/ignition/config/v2_3/types"
	"github.com/vincent-petithory/dataurl"

	"github.com/weir-gitops/weir/render/intent"
)

// Ignition has the options for writing a KubeadmConfig as Ignition.
type Ignition struct {
	// Version is 2.3, which Cluster API writes, or 3.0 to 3.4. Empty means 2.3.
	Version string
	// AdditionalConfig is a Container Linux Config to merge. Strict turns its warnings into errors.
	AdditionalConfig string
	Strict           bool
	// Proxy and CertificateAuthorities (URLs) are used to fetch files that the configuration refers to. They
	// require version 3.1.
	Proxy                  *IgnitionProxy
	CertificateAuthorities []string
}

// IgnitionProxy describes how Ignition reaches the network.
type IgnitionProxy struct {
	HTTPProxy  *string  `json:"httpProxy,omitempty"`
	HTTPSProxy *string  `json:"httpsProxy,omitempty"`
	NoProxy    []string `json:"noProxy,omitempty"`
}

// Problem is a field of the configuration that Ignition cannot express, or a remark about the additional
// configuration.
type Problem struct {
	// Field is its path below spec, such as "files[2].permissions".
	Field   string
	Message string
	// Warning is true if the document was written anyway.
	Warning bool
}

// Paths of the files for joining. Ignition writes files once, before the first boot, so they cannot be in
// /run.
const (
	ignitionScript = "/etc/kubeadm.sh"
	ignitionConfig = "/etc/kubeadm.yml"
)

// Ignition returns the Ignition document as JSON, in Cluster API's form. A unit runs a script that joins only
// once, because it moves the join configuration away. Jinja expressions are not expanded there. The document
// is empty if a problem is more than a warning.
func (k Kubeadm) Ignition(o Ignition) (string, []Problem) {
	b := ignitionBuilder{}
	config, err := k.Join.yaml()
	if err != nil {
		b.fail("joinConfiguration", "%v", err)
	}
	b.config.Ignition.Version = "2.3.0"
	b.users(k.Users)
	b.unit(v2.Unit{Name: "kubeadm.service", Enabled: truth(), Contents: "[Unit]\nDescription=kubeadm join\nConditionPathExists=" + ignitionConfig +
		"\nAfter=network.target\n[Service]\nType=oneshot\nExecStart=" + ignitionScript + "\n[Install]\nWantedBy=multi-user.target\n"})
	if k.NTP != nil && k.NTP.Enabled != nil && *k.NTP.Enabled {
		b.unit(v2.Unit{Name: "ntpd.service", Enabled: truth()})
	}
	if k.DiskSetup != nil {
		b.disks(*k.DiskSetup)
	}
	b.mounts(k.Mounts, k.DiskSetup)
	b.userFiles(k.Users)
	b.files(k.Files)
	b.file(ignitionScript, 0o700, k.ignitionScript())
	b.file(ignitionConfig, 0o600, "---\n"+config+"\n")
	if k.Join.Fetched != nil {
		b.file(ignitionFetchScript, 0o700, k.Join.Fetched.ignitionScript())
	}
	if k.NTP != nil && k.NTP.Enabled != nil && *k.NTP.Enabled && len(k.NTP.Servers) > 0 {
		b.file("/etc/ntp.conf", 0o644, ntpConf(k.NTP.Servers))
	}
	if len(k.BootCommands) > 0 {
		b.fail("bootCommands", "Ignition has no commands at boot; write a unit in ignition.containerLinuxConfig.additionalConfig")
	}
	b.additional(o)
	if b.failed {
		return "", b.problems
	}
	text, problems := b.text(o)
	return k.Join.Fetched.fill(text), problems
}

// ignitionScript returns the script that joins the cluster.
func (k Kubeadm) ignitionScript() string {
	before, config := "", ignitionConfig
	if k.Join.Fetched != nil {
		before, config = "sh "+ignitionFetchScript+"\n", ignitionJoinConfig
	}
	join := before + "kubeadm join --config " + config
	if k.Verbosity != nil {
		join += fmt.Sprintf(" -v %d", *k.Verbosity)
	}
	lines := append([]string{"#!/bin/bash", "set -e", ""}, k.PreCommands...)
	lines = append(lines, "", join, "mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete", "mv "+ignitionConfig+" /tmp/", "")
	return strings.Join(append(lines, k.PostCommands...), "\n") + "\n"
}

func ntpConf(servers []string) string {
	var s strings.Builder
	for _, server := range servers {
		s.WriteString("server " + strings.Join(strings.Fields(server), " ") + "\n")
	}
	// Only time queries, and everything from this host.
	s.WriteString("restrict default nomodify nopeer noquery notrap limited kod\nrestrict 127.0.0.1\nrestrict [::1]\n")
	return s.String()
}

// ignitionBuilder builds a version 2.3 document.
type ignitionBuilder struct {
	config   v2.Config
	problems []Problem
	failed   bool
}

func (b *ignitionBuilder) fail(field, format string, args ...any) {
	b.problems, b.failed = append(b.problems, Problem{Field: field, Message: fmt.Sprintf(format, args...)}), true
}

func (b *ignitionBuilder) warn(field, message string) {
	b.problems = append(b.problems, Problem{Field: field, Message: message, Warning: true})
}

func (b *ignitionBuilder) unit(u v2.Unit) {
	b.config.Systemd.Units = append(b.config.Systemd.Units, u)
}

func (b *ignitionBuilder) file(at string, mode int, content string) {
	b.add(v2.File{Node: v2.Node{Filesystem: "root", Path: at}, FileEmbedded1: v2.FileEmbedded1{Mode: &mode, Contents: v2.FileContents{Source: dataURL(content)}}})
}

func (b *ignitionBuilder) add(f v2.File) { b.config.Storage.Files = append(b.config.Storage.Files, f) }

func dataURL(content string) string { return "data:," + dataurl.EscapeString(content) }

func truth() *bool { t := true; return &t }

// users adds users to an Ignition config. Fields that Ignition does not support fail.
func (b *ignitionBuilder) users(users []User) {
	for i, u := range users {
		if intent.Value(u.Inactive) {
			b.fail(fmt.Sprintf("users[%d].inactive", i), "Ignition cannot make a user inactive")
		}
		out := v2.PasswdUser{Name: u.Name, Gecos: intent.Value(u.Gecos), HomeDir: intent.Value(u.HomeDir), Shell: intent.Value(u.Shell), PrimaryGroup: intent.Value(u.PrimaryGroup)}
		if intent.Value(u.Passwd) != "" {
			out.PasswordHash = u.Passwd
		}
		for _, g := range strings.Split(intent.Value(u.Groups), ",") {
			if g = strings.TrimSpace(g); g != "" {
				out.Groups = append(out.Groups, v2.Group(g))
			}
		}
		for _, key := range u.SSHAuthorizedKeys {
			out.SSHAuthorizedKeys = append(out.SSHAuthorizedKeys, v2.SSHAuthorizedKey(key))
		}
		b.config.Passwd.Users = append(b.config.Passwd.Users, out)
	}
}

// userFiles adds the files that let users become root and log in with a password, if they may.
func (b *ignitionBuilder) userFiles(users []User) {
	var passwords []string
	for i, u := range users {
		if strings.ContainsAny(u.Name, "/ \t\r\n,") && (intent.Value(u.Sudo) != "" || u.LockPassword != nil) {
			b.fail(fmt.Sprintf("users[%d].name", i), "it has a character that user names cannot have")
			continue
		}
		if sudo := intent.Value(u.Sudo); sudo != "" {
			b.file("/etc/sudoers.d/"+u.Name, 0o600, u.Name+" "+sudo+"\n")
		}
		if u.LockPassword != nil && !*u.LockPassword {
			passwords = append(passwords, u.Name)
		}
	}
	if len(passwords) > 0 {
		b.file("/etc/ssh/sshd_config", 0o600, "Subsystem sftp internal-sftp\nClientAliveInterval 180\nUseDNS no\nUsePAM yes\nPrintLastLog no\nPrintMotd no\n\n"+
			"Match User "+strings.Join(passwords, ",")+"\n  PasswordAuthentication yes\n")
	}
}

// files adds files to an Ignition config, with the mode 0644 unless they have permissions. Encodings that
// Ignition cannot represent fail.
func (b *ignitionBuilder) files(files []File) {
	for i, f := range files {
		at := fmt.Sprintf("files[%d]", i)
		content, mode := f.Content, 0o644
		switch f.Encoding {
		case "":
		case "base64":
			raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
			if err != nil {
				b.fail(at+".content", "it is not base64, although its encoding says so")
			}
			content = string(raw)
		default:
			b.fail(at+".encoding", "Ignition cannot carry %s here", f.Encoding)
		}
		if f.Permissions != "" {
			n, err := strconv.ParseUint(f.Permissions, 8, 12)
			if err != nil {
				b.fail(at+".permissions", `it must be octal, such as "0640"`)
			}
			mode = int(n)
		}
		if !path.IsAbs(f.Path) {
			b.fail(at+".path", "it must be absolute")
		}
		node := v2.Node{Filesystem: "root", Path: f.Path}
		user, group, _ := strings.Cut(f.Owner, ":")
		if user = strings.TrimSpace(user); user != "" {
			node.User = &v2.NodeUser{Name: user}
		}
		if group = strings.TrimSpace(group); group != "" {
			node.Group = &v2.NodeGroup{Name: group}
		}
		b.add(v2.File{Node: node, FileEmbedded1: v2.FileEmbedded1{Append: f.Append, Mode: &mode, Contents: v2.FileContents{Source: dataURL(content)}}})
	}
}

// disks adds disks and file systems to an Ignition config. Fields that Ignition does not support fail.
func (b *ignitionBuilder) disks(s DiskSetup) {
	for i, p := range s.Partitions {
		at := fmt.Sprintf("diskSetup.partitions[%d]", i)
		if t := intent.Value(p.TableType); t != "" && t != "gpt" {
			b.fail(at+".tableType", "Ignition makes gpt tables only")
		}
		if len(p.DiskLayout) > 0 {
			b.fail(at+".diskLayout", "Ignition has no partitions by percentage; use layout")
		}
		disk := v2.Disk{Device: p.Device, WipeTable: intent.Value(p.Overwrite)}
		if p.Layout {
			disk.Partitions = []v2.Partition{{}}
		}
		b.config.Storage.Disks = append(b.config.Storage.Disks, disk)
	}
	for i, f := range s.Filesystems {
		at := fmt.Sprintf("diskSetup.filesystems[%d]", i)
		if intent.Value(f.Partition) != "" {
			b.fail(at+".partition", "Ignition takes the partition's device instead")
		}
		if intent.Value(f.ReplaceFS) != "" {
			b.fail(at+".replaceFS", "Ignition has no such directive")
		}
		label := f.Label
		mount := &v2.Mount{Device: f.Device, Format: f.Filesystem, WipeFilesystem: intent.Value(f.Overwrite), Label: &label}
		for _, o := range f.ExtraOpts {
			mount.Options = append(mount.Options, v2.MountOption(o))
		}
		b.config.Storage.Filesystems = append(b.config.Storage.Filesystems, v2.Filesystem{Name: f.Label, Mount: mount})
	}
}

// mounts adds a unit for each mount. A mount's first word is a device, or the label of a file system in
// diskSetup.
func (b *ignitionBuilder) mounts(mounts [][]string, disks *DiskSetup) {
	devices := map[string]string{}
	if disks != nil {
		for _, f := range disks.Filesystems {
			devices[f.Label] = f.Device
		}
	}
	for i, m := range mounts {
		at := fmt.Sprintf("mounts[%d]", i)
		if len(m) < 2 {
			b.fail(at, "it needs the label of a file system, and where to mount it")
			continue
		}
		what, known := devices[m[0]]
		if !known && path.IsAbs(m[0]) {
			what, known = m[0], true
		}
		if !known {
			b.fail(at, "its first word must be the label of a file system in diskSetup, or a device")
		}
		if !path.IsAbs(m[1]) || strings.ContainsAny(strings.Join(m, ""), "\r\n") {
			b.fail(at, "its second word must be an absolute path, and no word may contain a line break")
			continue
		}
		text := "[Unit]\nDescription = Mount " + m[0] + "\n\n[Mount]\nWhat=" + what + "\nWhere=" + m[1] + "\n"
		if options := strings.Join(m[2:], ","); options != "" {
			text += "Options=" + options + "\n"
		}
		b.unit(v2.Unit{Name: unit.UnitNamePathEscape(m[1]) + ".mount", Enabled: truth(), Contents: text + "\n[Install]\nWantedBy=multi-user.target\n"})
	}
}

// text returns the document in the requested version.
func (b *ignitionBuilder) text(o Ignition) (string, []Problem) {
	if o.Version == "" || o.Version == "2.3" {
		if o.Proxy != nil || len(o.CertificateAuthorities) > 0 {
			b.warn("format", "Ignition 2.3 has no proxy and no certificate authorities for what it fetches; they need version 3.1")
		}
		return b.marshal(b.config)
	}
	doc, err := toVersion3(b.config, o)
	if err != nil {
		b.fail("ignition.containerLinuxConfig.additionalConfig", "Ignition %s cannot carry it: %v", o.Version, err)
		return "", b.problems
	}
	return b.marshal(doc)
}

func (b *ignitionBuilder) marshal(doc any) (string, []Problem) {
	out, err := json.Marshal(doc)
	if err != nil {
		b.fail("format", "write Ignition: %v", err)
		return "", b.problems
	}
	return string(out), b.problems
}
