package userdata

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// document builds text line by line. The method line starts a line, and does not end it.
type document struct {
	strings.Builder
	// strict writes the form of cloud-init's schema. By default document writes CAPA's form if cloud-init
	// accepts that as well: keys without a value, and numbers in place of strings. Another form would roll
	// pools that CAPA created.
	strict bool
}

// text writes a value that must be a string, even if it looks like another type.
func (d *document) text(v string) string {
	if d.strict && !isText(v) {
		return quoted(v)
	}
	return scalar(v)
}

func (d *document) line(indent int, parts ...string) {
	d.WriteByte('\n')
	d.WriteString(strings.Repeat(" ", indent))
	for _, p := range parts {
		d.WriteString(p)
	}
}

// pair writes "key: value" if the value is set.
func (d *document) pair(indent int, key string, value *string) {
	if value != nil && *value != "" {
		d.line(indent, key, ": ", d.text(*value))
	}
}

func (d *document) flag(indent int, key string, value *bool) {
	if value != nil {
		d.line(indent, key, ": ", fmt.Sprint(*value))
	}
}

// commands writes a list of shell commands, each in double quotes.
func (d *document) commands(list []string) {
	for _, c := range list {
		d.line(2, "- ", quoted(c))
	}
}

// modules writes the cloud-init modules after the commands.
func (d *document) modules(c CloudInit) {
	if c.NTP != nil && (c.NTP.Enabled != nil || len(c.NTP.Servers) > 0) {
		d.ntp(*c.NTP)
	}
	d.users(c.Users)
	if c.DiskSetup != nil {
		d.disks(*c.DiskSetup)
	}
	if len(c.Mounts) > 0 {
		d.line(0, "mounts:")
		for _, m := range c.Mounts {
			d.line(2, "-")
			for _, field := range m {
				d.line(4, "- ", d.text(field))
			}
		}
	}
}

func (d *document) ntp(n NTP) {
	d.line(0, "ntp:")
	d.flag(2, "enabled", n.Enabled)
	if len(n.Servers) > 0 {
		d.line(2, "servers:")
	}
	for _, s := range n.Servers {
		d.line(4, "- ", d.text(s))
	}
}

// users writes the users section of a cloud-config.
func (d *document) users(users []User) {
	if len(users) == 0 {
		return
	}
	d.line(0, "users:")
	for _, u := range users {
		d.line(2, "- name: ", d.text(u.Name))
		d.pair(4, "passwd", u.Passwd)
		d.pair(4, "gecos", u.Gecos)
		d.pair(4, "groups", u.Groups)
		d.pair(4, "homedir", u.HomeDir)
		d.flag(4, "inactive", u.Inactive)
		d.flag(4, "lock_passwd", u.LockPassword)
		d.pair(4, "shell", u.Shell)
		d.pair(4, "primary_group", u.PrimaryGroup)
		if intent.Value(u.Sudo) != "" {
			d.line(4, "sudo: ", scalar(*u.Sudo)) // may be the boolean false
		}
		if len(u.SSHAuthorizedKeys) > 0 {
			d.line(4, "ssh_authorized_keys:")
			for _, k := range u.SSHAuthorizedKeys {
				d.line(6, "- ", d.text(k))
			}
		}
	}
}

// disks writes the sections disk_setup and fs_setup of a cloud-config. Unless the document is strict, empty
// sections are written too.
func (d *document) disks(s DiskSetup) {
	if len(s.Partitions) > 0 || !d.strict {
		d.line(0, "disk_setup:")
	}
	for _, p := range s.Partitions {
		d.line(2, mapKey(p.Device), ":")
		d.pair(4, "table_type", p.TableType)
		d.layout(p)
		d.flag(4, "overwrite", p.Overwrite)
	}
	if len(s.Filesystems) > 0 || !d.strict {
		d.line(0, "fs_setup:")
	}
	for _, f := range s.Filesystems {
		d.line(2, "- label: ", scalar(f.Label))
		d.line(4, "filesystem: ", scalar(f.Filesystem))
		d.line(4, "device: ", scalar(f.Device))
		if intent.Value(f.Partition) != "" {
			d.line(4, "partition: ", scalar(*f.Partition)) // may be a number
		}
		d.flag(4, "overwrite", f.Overwrite)
		d.pair(4, "replace_fs", f.ReplaceFS)
		if len(f.ExtraOpts) > 0 {
			d.line(4, "extra_opts:")
			for _, o := range f.ExtraOpts {
				d.line(6, "- ", scalar(o))
			}
		}
	}
}

// partitionTypes maps Cluster API's names to cloud-init's codes.
var partitionTypes = map[string]string{
	"Linux": "83", "LinuxSwap": "82", "LinuxRAID": "fd", "LVM": "8e", "Fat32": "0c", "NTFS": "07", "LinuxExtended": "85",
}

// layout writes the layout of a disk: whether it has one partition, or the list of its partitions as
// percentages with optional types.
func (d *document) layout(p Partition) {
	if len(p.DiskLayout) == 0 {
		d.line(4, "layout: ", fmt.Sprint(p.Layout))
		return
	}
	d.line(4, "layout:")
	for _, s := range p.DiskLayout {
		code, known := partitionTypes[s.Type]
		if !known {
			code = s.Type
		}
		switch {
		case s.Type == "":
			d.line(6, "- ", fmt.Sprint(s.Percentage))
		case known && code[0] != '0' && code[0] <= '9':
			d.line(6, "- [", fmt.Sprint(s.Percentage), ", ", code, "]")
		default:
			// Quoted, because YAML parsers disagree about 07, 8e and 0c.
			d.line(6, "- [", fmt.Sprint(s.Percentage), ", ", quoted(code), "]")
		}
	}
}

// files writes entries of write_files. dash is the start of an entry; with its indentation, it is four
// columns wide.
func (d *document) files(dash string, files []File) {
	for _, f := range files {
		d.line(0, dash, "path: ", scalar(f.Path))
		if f.Encoding != "" {
			d.line(4, "encoding: ", quoted(f.Encoding))
		}
		if f.Owner != "" {
			d.line(4, "owner: ", scalar(f.Owner))
		}
		if f.Permissions != "" {
			d.line(4, "permissions: ", singleQuoted(f.Permissions))
		}
		if f.Append {
			d.line(4, "append: true")
		}
		d.content(f.Content)
	}
}

// content writes a file's content as a block, or quoted if a block would change it. A block ends in exactly
// one line feed.
func (d *document) content(text string) {
	if !fitsBlock(text) {
		d.line(4, "content: ", quoted(text))
		return
	}
	d.line(4, "content: |")
	for _, l := range strings.Split(text, "\n") {
		d.line(6, l)
	}
}
