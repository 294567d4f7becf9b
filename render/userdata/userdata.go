// Package userdata writes the user data by which instances join a cluster: the
// cloud-init documents of KubeadmConfig and EKSConfig and the MIME document of
// NodeadmConfig. It is pure and deterministic.
//
// For EKSConfig and NodeadmConfig the output equals what Cluster API's AWS
// provider writes, byte for byte, wherever that is valid YAML: taking over a
// running pool must not change its launch template. Values that would not
// survive as plain YAML are quoted.
package userdata

import (
	"fmt"
	"strings"
)

// Limit is the largest user data that EC2 takes, in bytes before base64.
const Limit = 16384

// CloudInit are the parts that all three formats share.
type CloudInit struct {
	Files     []File
	Users     []User
	NTP       *NTP
	DiskSetup *DiskSetup
	Mounts    [][]string
}

func (c CloudInit) empty() bool {
	return len(c.Files) == 0 && len(c.Users) == 0 && c.NTP == nil && c.DiskSetup == nil && len(c.Mounts) == 0
}

// File is a file to write on the instance.
type File struct {
	Path        string `json:"path" check:"required,minlen=1"`
	Owner       string `json:"owner"`
	Permissions string `json:"permissions"`
	Encoding    string `json:"encoding" enum:"base64|gzip|gzip+base64"`
	Append      bool   `json:"append"`
	Content     string `json:"content"`
}

// User is a login to make on the instance.
type User struct {
	Name              string   `json:"name" check:"required,minlen=1"`
	Gecos             *string  `json:"gecos"`
	Groups            *string  `json:"groups"`
	HomeDir           *string  `json:"homeDir"`
	Inactive          *bool    `json:"inactive"`
	Shell             *string  `json:"shell"`
	Passwd            *string  `json:"passwd"`
	PrimaryGroup      *string  `json:"primaryGroup"`
	LockPassword      *bool    `json:"lockPassword"`
	Sudo              *string  `json:"sudo"`
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys"`
}

// NTP sets time servers.
type NTP struct {
	Servers []string `json:"servers"`
	Enabled *bool    `json:"enabled"`
}

// DiskSetup partitions and formats disks.
type DiskSetup struct {
	Partitions  []Partition
	Filesystems []Filesystem
}

// Partition is one entry of disk_setup.
type Partition struct {
	Device    string  `json:"device" check:"required,minlen=1"`
	Layout    bool    `json:"layout" check:"required"`
	Overwrite *bool   `json:"overwrite"`
	TableType *string `json:"tableType"`
}

// Filesystem is one entry of fs_setup.
type Filesystem struct {
	Device     string   `json:"device" check:"required,minlen=1"`
	Filesystem string   `json:"filesystem" check:"required,minlen=1"`
	Label      string   `json:"label"`
	Partition  *string  `json:"partition"`
	Overwrite  *bool    `json:"overwrite"`
	ExtraOpts  []string `json:"extraOpts"`
	// ReplaceFS is a member in KubeadmConfig only.
	ReplaceFS *string
}

// document builds text line by line. Each line is begun, not ended, by line.
type document struct{ strings.Builder }

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
		d.line(indent, key, ": ", scalar(*value))
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

// modules writes the cloud-init modules that follow the commands.
func (d *document) modules(c CloudInit) {
	if c.NTP != nil {
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
				d.line(4, "- ", scalar(field))
			}
		}
	}
}

func (d *document) ntp(n NTP) {
	d.line(0, "ntp:")
	d.flag(2, "enabled", n.Enabled)
	d.line(2, "servers:")
	for _, s := range n.Servers {
		d.line(4, "- ", scalar(s))
	}
}

func (d *document) users(users []User) {
	if len(users) == 0 {
		return
	}
	d.line(0, "users:")
	for _, u := range users {
		d.line(2, "- name: ", scalar(u.Name))
		d.pair(4, "passwd", u.Passwd)
		d.pair(4, "gecos", u.Gecos)
		d.pair(4, "groups", u.Groups)
		d.pair(4, "homedir", u.HomeDir)
		d.flag(4, "inactive", u.Inactive)
		d.flag(4, "lock_passwd", u.LockPassword)
		d.pair(4, "shell", u.Shell)
		d.pair(4, "primary_group", u.PrimaryGroup)
		d.pair(4, "sudo", u.Sudo)
		if len(u.SSHAuthorizedKeys) > 0 {
			d.line(4, "ssh_authorized_keys:")
			for _, k := range u.SSHAuthorizedKeys {
				d.line(6, "- ", scalar(k))
			}
		}
	}
}

func (d *document) disks(s DiskSetup) {
	d.line(0, "disk_setup:")
	for _, p := range s.Partitions {
		d.line(2, mapKey(p.Device), ":")
		d.pair(4, "table_type", p.TableType)
		d.line(4, "layout: ", fmt.Sprint(p.Layout))
		d.flag(4, "overwrite", p.Overwrite)
	}
	d.line(0, "fs_setup:")
	for _, f := range s.Filesystems {
		d.line(2, "- label: ", scalar(f.Label))
		d.line(4, "filesystem: ", scalar(f.Filesystem))
		d.line(4, "device: ", scalar(f.Device))
		d.pair(4, "partition", f.Partition)
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

// files writes entries of write_files. dash is the text that begins an entry,
// which is four columns wide with its indentation.
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

// content writes a file's content as a block, or quoted where a block would
// change it. A block ends in exactly one line feed.
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
