//go:build unix

package exec

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"example.com/runner/test/testkit"
)

func TestScriptErrorSaysWhyFileIsNotExecuted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job")
	for content, want := range map[string]string{
		"#!/bin/sh\r\necho\r\n": "its #! line ends with a carriage return, as in Windows files; remove them: sed -i 's/\\r$//' " + path,
		"#!/no/such -x\n":       "no program /no/such, which its #! line names",
		"echo hi\n":             "it is no program and has no #! line; add one such as #!/bin/sh, or run: sh " + path,
		"":                      "it is no program and has no #! line; add one such as #!/bin/sh, or run: sh " + path,
		"\x7fELFnonsense":       "",
	} {
		testkit.NoError(t, os.WriteFile(path, []byte(content), 0o700))
		err := exec.Command(path).Run()
		if err == nil {
			t.Fatalf("%q: got no error, want one", content)
		}
		testkit.Equal(t, "reason", scriptError(t.Context(), path, err), want)
	}
	err := exec.Command(path + ".missing").Run()
	testkit.Equal(t, "reason of a missing file", scriptError(t.Context(), path+".missing", err), "")
}
