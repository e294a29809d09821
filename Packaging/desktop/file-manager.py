# The entry "Send with Hexlist…" for selected local files, in Nautilus 3, Nautilus 4 and Caja. Showing the menu
# starts no program and sends no request.
import subprocess
from gi.repository import GObject, @LIBRARY@


class HexlistMenu(GObject.GObject, @LIBRARY@.MenuProvider):
    def get_file_items(self, *args):
        # Nautilus 4 passes the files alone, the others a window before them.
        paths = [file.get_location().get_path() for file in args[-1]]
        if not paths or None in paths:
            return []
        entry = @LIBRARY@.MenuItem(name="Hexlist::send", label="Send with Hexlist…", icon="hexlist")
        command = ["hexlist", "web", "--start", "--send", "--", *paths]
        entry.connect("activate", lambda _: subprocess.Popen(command, start_new_session=True))
        return [entry]

    def get_background_items(self, *args):
        return []
