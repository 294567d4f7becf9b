// Package userdata writes the user data with which instances join a cluster: the cloud-init and Ignition
// documents of KubeadmConfig, the cloud-init document of EKSConfig and the MIME document of NodeadmConfig. It
// is pure and deterministic.
//
// For EKSConfig and NodeadmConfig the output is byte for byte the output of Cluster API's AWS provider,
// except where that is invalid YAML or not allowed by cloud-init's schema. So adopting a running pool does
// not change its launch template. Values that would change as plain YAML are quoted.
package userdata

// CloudInit has the parts that all three formats share.
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
	Overwrite *bool   `json:"overwrite"`
	TableType *string `json:"tableType"`
	// Layout makes one partition of the whole disk. It is ignored if DiskLayout lists the partitions, which
	// only KubeadmConfig supports.
	Layout     bool
	DiskLayout []PartitionSpec
}

// PartitionSpec is one partition of a disk.
type PartitionSpec struct {
	// Percentage is of the disk's size.
	Percentage int32 `json:"percentage" check:"required,min=1,max=100"`
	// Type is a name that Cluster API knows or a GPT type GUID; empty for
	// cloud-init's default, Linux.
	Type string `json:"partitionType"`
}

// Filesystem is one entry of fs_setup.
type Filesystem struct {
	Device     string   `json:"device" check:"required,minlen=1"`
	Filesystem string   `json:"filesystem" check:"required,minlen=1"`
	Label      string   `json:"label"`
	Partition  *string  `json:"partition"`
	Overwrite  *bool    `json:"overwrite"`
	ExtraOpts  []string `json:"extraOpts"`
	// ReplaceFS exists only in KubeadmConfig.
	ReplaceFS *string
}
