package history

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Version is a resourceVersion: a decimal number of any size.
type Version string

// Compare orders two versions. A version that is no number panics: every version that gets this
// far was checked by Parse.
func (v Version) Compare(other Version) int {
	order, err := resourceversion.CompareResourceVersion(string(v), string(other))
	if err != nil {
		panic(fmt.Sprintf("versions are checked when they come in: %v", err))
	}
	return order
}

// Newer says whether v comes after other.
func (v Version) Newer(other Version) bool {
	return v.Compare(other) > 0
}

// Parse checks that a version is one that can be ordered.
func Parse(text string) (Version, error) {
	if _, err := resourceversion.CompareResourceVersion(text, "1"); err != nil {
		return "", fmt.Errorf("resourceVersion %q: %w", text, err)
	}
	return Version(text), nil
}
