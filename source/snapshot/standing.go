package snapshot

// Standing is the relation of a commit to the commits that are or were followed.
type Standing string

// Relations of a commit.
const (
	// Behind means that it is a followed commit or an ancestor of one.
	Behind Standing = "behind"
	// Ahead means that it descends from the followed commit.
	Ahead Standing = "ahead"
	// Aside means that it is in the repository, and neither Behind nor Ahead.
	Aside Standing = "aside"
	// Unknown means that it is not in the repository.
	Unknown Standing = "unknown"
)
